"""The Transformer as a practitioner writes it in PyTorch for speed: joined projections,
`scaled_dot_product_attention`, PyTorch's own losses, positions computed once. For full batches:
nothing is masked but the future. Built from the same `[model]` block as transformer.py, with the
same parameters up to the joining of matrices.
"""

import torch
from torch import nn
from torch.nn import functional

from fast_seq2seq import FastSeq2Seq
from products import autocast, scaler
from transformer import sinusoid


class Attention(nn.Module):
    def __init__(self, width, heads, bias, dropout, causal, cross):
        super().__init__()
        self.heads, self.rate, self.causal, self.cross = heads, dropout, causal, cross
        if cross:
            self.query = nn.Linear(width, width, bias=bias)
            self.memory = nn.Linear(width, 2 * width, bias=bias)
        else:
            self.joined = nn.Linear(width, 3 * width, bias=bias)
        self.output = nn.Linear(width, width, bias=bias)

    def forward(self, x, memory=None):
        batch, length, width = x.shape

        def split(y):
            return y.view(batch, -1, self.heads, width // self.heads).transpose(1, 2)

        if self.cross:
            query, (key, value) = self.query(x), self.memory(memory).chunk(2, dim=-1)
        else:
            query, key, value = self.joined(x).chunk(3, dim=-1)
        rate = self.rate if self.training else 0.0
        y = functional.scaled_dot_product_attention(
            split(query), split(key), split(value), dropout_p=rate, is_causal=self.causal
        )
        return self.output(y.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, width, spec, decoder):
        super().__init__()
        self.pre, self.rate = spec["norm"] == "pre", spec["dropout"]
        attention = (width, spec["heads"], spec["attention_bias"], spec["attention_dropout"])
        self.attention = Attention(*attention, causal=decoder, cross=False)
        self.cross = Attention(*attention, causal=False, cross=True) if decoder else None
        self.feed_forward = nn.Sequential(
            nn.Linear(width, spec["ffn"]), nn.ReLU(), nn.Dropout(spec["activation_dropout"]), nn.Linear(spec["ffn"], width)
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width, eps=spec["norm_epsilon"]) for _ in range(3 if decoder else 2))

    def residual(self, x, norm, part):
        if self.pre:
            return x + functional.dropout(part(norm(x)), self.rate, self.training)
        return norm(x + functional.dropout(part(x), self.rate, self.training))

    def forward(self, x, memory=None):
        x = self.residual(x, self.norms[0], self.attention)
        if self.cross is not None:
            x = self.residual(x, self.norms[1], lambda y: self.cross(y, memory))
        return self.residual(x, self.norms[-1], self.feed_forward)


class FastTransformer(nn.Module):
    """`spec` is a recipe's `[model]`; one vocabulary of `rows`, both sides of `length` tokens."""

    def __init__(self, spec, rows, length):
        super().__init__()
        width = spec["width"]
        self.spec, self.scale = spec, width**0.5 if spec["embedding"]["scale"] else 1.0
        self.embedding = nn.Embedding(rows, width)
        tied = spec["embedding"]["tied"]
        self.target_embedding = self.embedding if tied == "all" else nn.Embedding(rows, width)
        self.output = nn.Linear(width, rows, bias=False)
        if tied != "none":
            self.output.weight = self.target_embedding.weight
        nn.init.normal_(self.embedding.weight, std=width**-0.5)
        kind = spec["embedding"]["positions"]
        first = 2 if kind == "sinusoid-fairseq" else 0
        self.register_buffer("positions", sinusoid(kind, torch.arange(length) + first, width).float())
        for side in ("encoder", "decoder"):
            layers = (Layer(width, spec[side], side == "decoder") for _ in range(spec[side]["layers"]))
            setattr(self, side, nn.ModuleList(layers))
            norm = nn.LayerNorm(width, eps=spec[side]["norm_epsilon"]) if spec[side]["norm"] == "pre" else nn.Identity()
            setattr(self, f"{side}_norm", norm)

    def embed(self, table, ids):
        return functional.dropout(table(ids) * self.scale + self.positions, self.spec["embedding"]["dropout"], self.training)

    def forward(self, source, target):
        memory = self.embed(self.embedding, source)
        for layer in self.encoder:
            memory = layer(memory)
        memory = self.encoder_norm(memory)
        inputs = torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1)
        x = self.embed(self.target_embedding, inputs)
        for layer in self.decoder:
            x = layer(x, memory)
        return self.output(self.decoder_norm(x))


class Training:
    """Updates of a model on random full batches: forward, backward, clipping if the recipe clips,
    fused Adam.
    """

    def __init__(self, recipe, rows, sentences, tokens, mode):
        torch.manual_seed(1)
        kinds = {recipe["model"][side]["kind"] for side in ("encoder", "decoder")}
        model = FastTransformer if kinds == {"transformer"} else FastSeq2Seq
        self.model = model(recipe["model"], rows, tokens).train()
        self.smoothing = recipe["loss"]["label_smoothing"]
        self.clip = recipe["train"].get("clip_norm")
        self.mode = mode
        self.scaler = scaler(mode)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
        self.batches = [torch.randint(4, rows, (2, sentences, tokens)) for _ in range(4)]
        self.made = 0

    def parameters(self):
        return sum(p.numel() for p in self.model.parameters())

    def update(self):
        source, target = self.batches[self.made % len(self.batches)]
        self.made += 1
        with autocast(self.mode):
            logits = self.model(source, target)
        loss = functional.cross_entropy(logits.float().flatten(0, 1), target.flatten(), label_smoothing=self.smoothing)
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        if self.clip is not None:
            self.scaler.unscale_(self.optimizer)
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.clip)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()
