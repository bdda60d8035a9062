"""What torch.save writes -> tests/fixtures/state_dict*.pt, and the same weights under our paths ->
state_dict.safetensors.

`state_dict.pt` is laid out as fairseq's checkpoints are: under "model", beside other things, with
fairseq's names, tied matrices under each of their names, a version number, and projections below
each other as before fairseq 0.9. `state_dict_half.pt` is a plain state dict with our names, as
DistributedDataParallel prefixes them, in bf16, with a matrix that is stored transposed.
"""

import argparse

import numpy as np
import torch
from safetensors.numpy import save_file

FIXTURES = __file__.rsplit("/", 2)[0] + "/fixtures"
WIDTH, INNER, WORDS = 4, 6, 5


def draw(generator, *shape):
    return torch.randn(*shape, generator=generator)


def main():
    generator = torch.Generator().manual_seed(17)
    table = draw(generator, WORDS, WIDTH)
    packed, packed_bias = draw(generator, 3 * WIDTH, WIDTH), draw(generator, 3 * WIDTH)
    rest = {
        "self_attn.out_proj.weight": draw(generator, WIDTH, WIDTH),
        "self_attn_layer_norm.weight": draw(generator, WIDTH),
        "fc1.weight": draw(generator, INNER, WIDTH),
        "fc2.bias": draw(generator, WIDTH),
        "final_layer_norm.bias": draw(generator, WIDTH),
    }
    theirs = {
        "encoder.embed_tokens.weight": table,
        "decoder.embed_tokens.weight": table,
        "decoder.output_projection.weight": table,
        "encoder.version": torch.tensor([3.0]),
        "decoder.embed_positions._float_tensor": torch.zeros(1),
        "encoder.layers.0.self_attn.in_proj_weight": packed,
        "encoder.layers.0.self_attn.in_proj_bias": packed_bias,
        **{f"encoder.layers.0.{name}": value for name, value in rest.items()},
    }
    torch.save({"args": argparse.Namespace(arch="x"), "model": theirs, "epoch": 3}, f"{FIXTURES}/state_dict.pt")

    layer = "encoder.layers.0."
    ours = {"embedding.weight": table, "target_embedding.weight": table, "output.weight": table}
    for i, name in enumerate(["query", "key", "value"]):
        rows = slice(i * WIDTH, (i + 1) * WIDTH)
        ours[f"{layer}self_attention.{name}.weight"] = packed[rows]
        ours[f"{layer}self_attention.{name}.bias"] = packed_bias[rows]
    paths = ["self_attention.output.weight", "self_attention_norm.weight", "feed_forward.input.weight",
             "feed_forward.output.bias", "feed_forward_norm.bias"]  # fmt: skip
    ours |= {layer + path: value for path, value in zip(paths, rest.values())}

    half = {name: value.bfloat16() for name, value in ours.items()}
    stored = {f"module.{name}": value for name, value in half.items()}
    name = f"module.{layer}feed_forward.input.weight"
    stored[name] = stored[name].t().contiguous().t()
    stored["module.steps"] = torch.tensor(7)
    torch.save(stored, f"{FIXTURES}/state_dict_half.pt")

    arrays = {name: np.ascontiguousarray(value.numpy()) for name, value in ours.items()}
    arrays |= {f"half.{name}": np.ascontiguousarray(value.float().numpy()) for name, value in half.items()}
    save_file(arrays, f"{FIXTURES}/state_dict.safetensors")


if __name__ == "__main__":
    main()
