"""Forward, losses, every gradient and one update of small Transformers ->
tests/fixtures/transformer_*.safetensors.

Also prints what the same computation differs by in FP32, and with its products in bf16 and fp16,
which is what the tolerances of docs/align.md are made from.
"""

import numpy as np
import torch

import fixture
import update_rules
from transformer import Transformer, cross_entropy

SPECIALS = {
    "openseq2seq": {"pad": 0, "end": 1, "begin": 2, "unknown": 3},
    "fairseq": {"begin": 0, "pad": 1, "end": 2, "unknown": 3},
}


def model_spec(norm, epsilon, bias, start, positions, init, tied="all", remove_padding=False):
    stack = {
        "kind": "transformer", "layers": 2, "heads": 4, "ffn": 32, "norm": norm, "norm_epsilon": epsilon,
        "attention_bias": bias, "init": init, "dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0,
    }  # fmt: skip
    return {
        "width": 16,
        "embedding": {"tied": tied, "scale": True, "zero_padding": True, "positions": positions, "dropout": 0.0},
        "encoder": {**stack, "remove_padding": remove_padding},
        "decoder": {**stack, "start": start},
    }


def mixed_spec(tied, start, encoder, decoder):
    """Encoder and decoder with their own sizes, norms and biases; positions of the paper,
    embeddings as they are.
    """
    spec = model_spec("pre", 1e-6, True, start, "sinusoid-paper", "xavier-uniform", tied)
    spec["width"] = 12
    spec["embedding"] |= {"scale": False, "zero_padding": False}
    spec["encoder"] |= {"layers": 1, "heads": 3, "ffn": 20, "norm": encoder, "attention_bias": False}
    spec["decoder"] |= {"layers": 2, "heads": 2, "ffn": 24, "norm": decoder, "norm_epsilon": 1e-3}
    return spec


def adam(beta2, epsilon, place):
    return {"kind": "adam", "beta1": 0.9, "beta2": beta2, "epsilon": epsilon, "epsilon_place": place}


def loss_spec(smoothing, share, denominator):
    return {
        "kind": "cross-entropy", "label_smoothing": share, "smoothing": smoothing, "denominator": denominator,
    }  # fmt: skip


# Adam's epsilon is far above the published ones: then its place and the clipping show in the
# update, and gradients that are zero in exact arithmetic (key biases; a softmax does not see them)
# do not become steps of full size and random sign.
FIXTURES = {
    "transformer_prenorm_openseq2seq": {
        "model": model_spec(
            "pre", 1e-6, False, "zeros", "sinusoid-tensor2tensor", "xavier-uniform", remove_padding=True
        ),
        "vocabulary": {"size": 23, **SPECIALS["openseq2seq"]},
        "loss": loss_spec("other-classes", 0.1, "tokens"),
        "optimizer": adam(0.997, 1e-3, "raw-root"),
        "learning_rate": 0.01,
        "clip_norm": None,
    },
    "transformer_postnorm_fairseq": {
        "model": model_spec("post", 1e-5, True, "end", "sinusoid-fairseq", "fairseq"),
        "vocabulary": {"size": 23, **SPECIALS["fairseq"]},
        "loss": loss_spec("all-classes", 0.1, "tokens"),
        "optimizer": adam(0.98, 1e-3, "raw-root"),
        "learning_rate": 0.01,
        "clip_norm": 0.5,
    },
    # NVIDIA's fork of fairseq: norms before the sub-layers, no biases in attention.
    "transformer_prenorm_nvidia": {
        "model": model_spec("pre", 1e-5, False, "end", "sinusoid-fairseq", "xavier-uniform"),
        "vocabulary": {"size": 23, **SPECIALS["fairseq"]},
        "loss": loss_spec("all-classes", 0.1, "tokens"),
        "optimizer": adam(0.997, 1e-3, "corrected-root"),
        "learning_rate": 0.01,
        "clip_norm": None,
    },
    # The paper, and tensor2tensor's ways where it is silent.
    "transformer_postnorm_paper": {
        "model": model_spec("post", 1e-6, False, "zeros", "sinusoid-paper", "xavier-uniform"),
        "vocabulary": {"size": 23, **SPECIALS["openseq2seq"]},
        "loss": loss_spec("all-classes", 0.1, "tokens"),
        "optimizer": adam(0.98, 1e-3, "raw-root"),
        "learning_rate": 0.01,
        "clip_norm": None,
    },
    # No published model: what those above leave out, an encoder and a decoder of different kinds,
    # and the untied tables.
    "transformer_mixed_untied": {
        "model": mixed_spec("none", "begin", encoder="pre", decoder="post"),
        "vocabulary": {"size": 19, **SPECIALS["fairseq"]},
        "loss": loss_spec("all-classes", 0.0, "sentences"),
        "optimizer": adam(0.98, 1e-3, "corrected-root"),
        "learning_rate": 0.02,
        "clip_norm": 100.0,
    },
    "transformer_mixed_decoder_tied": {
        "model": mixed_spec("decoder", "zeros", encoder="post", decoder="pre"),
        "vocabulary": {"size": 19, **SPECIALS["openseq2seq"]},
        "loss": loss_spec("other-classes", 0.2, "positions"),
        "optimizer": {"kind": "sgd", "momentum": 0.9},
        "learning_rate": 0.5,
        "clip_norm": 0.3,
    },
}


# In the order in which the fixtures came to be, so that a new one leaves the others as they are.
SEEDS = {
    "transformer_prenorm_openseq2seq": 0,
    "transformer_postnorm_fairseq": 1,
    "transformer_mixed_untied": 2,
    "transformer_mixed_decoder_tied": 3,
    "transformer_prenorm_nvidia": 4,
    "transformer_postnorm_paper": 5,
}


def sentences(vocabulary, seed, lengths):
    """Random sentences that end in the end token."""
    draw = np.random.default_rng(seed)
    rows = [[*draw.integers(4, vocabulary["size"], n - 1), vocabulary["end"]] for n in lengths]
    return fixture.padded(rows, vocabulary["pad"])


def step(model, source, target, description, scale=1.0):
    """Everything a fixture holds, in the model's precision. Rows at padding are set to 0: they are
    not compared.
    """
    pad = description["vocabulary"]["pad"]
    source_rows = (source != pad).unsqueeze(-1)
    target_rows = (target != pad).unsqueeze(-1)
    memory = model.encode(source)
    # A convolutional encoder's keys and values are two.
    keys, values = memory if isinstance(memory, tuple) else (memory, memory)
    logits = model.project(model.decode(target, memory, source))
    loss, nll, count = cross_entropy(logits, target, pad, description["loss"])
    model.zero_grad()
    (scale * loss / count).backward()
    gradients = {name: p.grad / scale for name, p in model.named_parameters()}
    rule = getattr(update_rules, description["optimizer"]["kind"])
    clipped, norm = update_rules.clip(gradients, description["clip_norm"])
    updated = {
        name: rule(p.detach(), clipped[name], {}, description["learning_rate"], description["optimizer"])
        for name, p in model.named_parameters()
    }
    tensors = {
        "outputs/source_embedding": model.embed_source(source) * source_rows,
        "outputs/target_embedding": model.embed_target(target) * target_rows,
        "outputs/encoder": keys * source_rows,
        "outputs/logits": logits * target_rows,
        "losses/cross_entropy": loss,
        "losses/nll": nll,
        "norms/gradient": norm,
    }
    if values is not keys:
        tensors["outputs/encoder_values"] = values * source_rows
    tensors |= {f"gradients/{name}": value for name, value in gradients.items()}
    tensors |= {f"updated/{name}": value for name, value in updated.items()}
    counts = {"counts/cross_entropy": count, "counts/nll": int((target != pad).sum())}
    return {name: value.detach() for name, value in tensors.items()}, counts


def differences(exact, single):
    """Largest difference by rung, relative to the tensor's largest element (for gradients: the
    largest of all of them).
    """
    largest = max(float(v.abs().max()) for k, v in exact.items() if k.startswith("gradients/"))
    worst = {}
    for name, value in exact.items():
        rung = name if name.startswith("outputs/") else name.split("/")[0]
        scale = largest if rung == "gradients" else float(value.abs().max())
        off = (value - single[name].double()).abs() / scale
        worst[rung] = max(worst.get(rung, 0.0), float(off.max()))
        if rung == "gradients":
            # A ReLU whose input is close to 0 may be on in one type and off in another: a whole
            # row, whatever the type.
            most = float(off.flatten().quantile(0.9))
            worst["gradients, nine in ten"] = max(worst.get("gradients, nine in ten", 0.0), most)
    return worst


def main():
    torch.manual_seed(0)
    for name, description in FIXTURES.items():
        number = SEEDS[name]
        vocabulary = description["vocabulary"]
        model = Transformer(description["model"], vocabulary).double()
        fixture.randomize(model, seed=100 + number)
        source = sentences(vocabulary, seed=200 + number, lengths=(7, 4, 6))
        target = sentences(vocabulary, seed=300 + number, lengths=(5, 8, 3))
        weights = {f"weights/{key}": value.detach().clone() for key, value in model.named_parameters()}
        exact, counts = step(model, source, target, description)
        inputs = {
            "inputs/source": source,
            "inputs/target": target,
            "inputs/source_lengths": (source != vocabulary["pad"]).sum(dim=1),
            "inputs/target_lengths": (target != vocabulary["pad"]).sum(dim=1),
        }
        producer = {"producer": f"PyTorch {torch.__version__.split('+')[0]}", "computed_in": "float64"}
        fixture.save(name, weights | inputs | exact | counts, {"layout": 1, **producer, **description})

        single, _ = step(model.float(), source, target, description)
        print("  FP32 differs by", {key: f"{value:.1e}" for key, value in differences(exact, single).items()})
        for half in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=half):
                mixed, _ = step(model, source, target, description, scale=1024.0)
            found = {key: f"{value:.1e}" for key, value in differences(exact, mixed).items() if key != "updated"}
            print(f"  {half} differs by", found)
        for change in ("clip_norm", "optimizer"):
            other = dict(description)
            if change == "clip_norm":
                other["clip_norm"] = None
            else:
                place = {"raw-root": "corrected-root", "corrected-root": "raw-root"}
                other["optimizer"] = description["optimizer"] | {
                    "epsilon_place": place.get(description["optimizer"].get("epsilon_place"))
                }
            model.double().load_state_dict({k.removeprefix("weights/"): v for k, v in weights.items()})
            moved = step(model, source, target, other)[0]
            shift = max(float((moved[k] - exact[k]).abs().max()) for k in exact if k.startswith("updated/"))
            print(f"  with another {change} the update moves by {shift:.1e} of {description['learning_rate']}")


if __name__ == "__main__":
    main()
