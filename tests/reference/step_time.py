"""Seconds that PyTorch takes for one update of two recipes on this machine's CPU: a yardstick, not a claim.

    python step_time.py [--threads 2] [--updates 10]

Wall time means something on a calm machine alone; with `--threads 1` the processor time beside it stands up to some load.

An update is forward, backward and Adam on random sentences of full length, dropout on, after two updates to warm up. Once with the
attention of transformer.py and once with PyTorch's fused `scaled_dot_product_attention`.
"""

import argparse
import os
import statistics
import time

import torch
from torch import nn

import transformer
from transformer import Attention, Transformer, cross_entropy
from transformer_fixtures import SPECIALS, loss_spec, model_spec


class FusedAttention(Attention):
    """The same parameters and result through PyTorch's fused kernel."""

    def forward(self, query, memory, hidden):
        batch, length, width = query.shape

        def split(x):
            return x.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)

        q, k, v = split(self.query(query)), split(self.key(memory)), split(self.value(memory))
        rate = self.rate if self.training else 0.0
        x = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=~hidden, dropout_p=rate)
        return self.output(x.transpose(1, 2).reshape(batch, length, width))


def sized(spec, width, layers, heads, ffn, dropout, inner_dropout):
    spec["width"] = width
    spec["embedding"]["dropout"] = dropout
    for part in ("encoder", "decoder"):
        spec[part] |= {
            "layers": layers, "heads": heads, "ffn": ffn, "dropout": dropout, "attention_dropout": inner_dropout,
            "activation_dropout": inner_dropout,
        }  # fmt: skip
    return spec


WARM_UP = 2

# name: model, vocabulary, loss, batch of sentences, tokens of a sentence
RECIPES = {
    "reversal-transformer": (
        sized(model_spec("pre", 1e-6, False, "zeros", "sinusoid-tensor2tensor", "xavier-uniform"), 128, 2, 8, 512, 0.1, 0.1),
        {"size": 14, **SPECIALS["openseq2seq"]}, loss_spec("other-classes", 0.0, "tokens"), 64, 56,
    ),
    "multi30k-transformer-tiny": (
        sized(model_spec("post", 1e-5, True, "end", "sinusoid-fairseq", "fairseq"), 128, 4, 4, 256, 0.3, 0.0),
        {"size": 10000, **SPECIALS["fairseq"]}, loss_spec("all-classes", 0.1, "tokens"), 256, 16,
    ),
}  # fmt: skip


def measure(recipe, attention, updates):
    spec, vocabulary, loss, batch, length = recipe
    transformer.Attention = attention
    model = Transformer(spec, vocabulary).train()
    with torch.no_grad():
        model.embedding.weight.mul_(spec["width"] ** -0.5)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9)
    times = []
    for update in range(WARM_UP + updates):
        source, target = torch.randint(4, vocabulary["size"], (2, batch, length))
        source[:, -1] = target[:, -1] = vocabulary["end"]
        begin, used = time.perf_counter(), time.process_time()
        total, _, count = cross_entropy(model(source, target), target, vocabulary["pad"], loss)
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()
        if update >= WARM_UP:
            times.append((time.perf_counter() - begin, time.process_time() - used))
    return times


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--updates", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    print(f"PyTorch {torch.__version__}, {options.threads} threads, load {os.getloadavg()[0]:.2f} before")
    print("recipe                     | attention | sentences x tokens | median s | least s | processor s | target tokens/s")
    for name, recipe in RECIPES.items():
        for label, attention in (("plain", Attention), ("fused", FusedAttention)):
            times = measure(recipe, attention, options.updates)
            wall, used = zip(*times)
            middle, batch, length = statistics.median(wall), recipe[3], recipe[4]
            print(
                f"{name:26} | {label:9} | {f'{batch} x {length}':18} | {middle:8.3f} | {min(wall):7.3f} | "
                f"{statistics.median(used):11.3f} | "
                f"{batch * length / middle:15.0f}"
            )
    print(f"load {os.getloadavg()[0]:.2f} after")


if __name__ == "__main__":
    main()
