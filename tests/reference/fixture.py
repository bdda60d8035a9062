"""Writing fixtures in the layout of docs/align.md: computed in FP64, stored in FP32."""

import json
import os
from pathlib import Path

import numpy as np
import safetensors.numpy
import torch

FOLDER = Path(__file__).resolve().parent.parent / "fixtures"


def stored(value):
    """A tensor as it is kept: floats as FP32, ids and counts as I64, never without a dimension."""
    value = torch.as_tensor(value).detach()
    value = value.float() if value.is_floating_point() else value.long()
    return np.ascontiguousarray(value.reshape(-1).numpy() if value.dim() == 0 else value.numpy())


def save(name, tensors, description):
    """Writes `tests/fixtures/NAME.safetensors`, its description as JSON under the metadata key
    `zoo`.
    """
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.safetensors"
    part = path.with_suffix(".part")
    arrays = {key: stored(value) for key, value in tensors.items()}
    safetensors.numpy.save_file(arrays, part, metadata={"zoo": json.dumps(description)})
    os.replace(part, path)
    print(f"{path.name}: {path.stat().st_size} bytes, {len(arrays)} tensors")


def save_json(name, value):
    """Writes `tests/fixtures/NAME.json`, one line per innermost list or object."""
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    part = path.with_suffix(".part")
    part.write_text(layout(value) + "\n")
    os.replace(part, path)
    print(f"{path.name}: {path.stat().st_size} bytes")


def layout(value, indent=""):
    """JSON text that stays readable: what fits in 110 columns is on one line."""
    flat = json.dumps(value)
    if len(indent) + len(flat) <= 110 or not isinstance(value, (dict, list)):
        return flat
    inner = indent + "  "
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(k)}: {layout(v, inner)}" for k, v in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + indent + "}"
    if all(not isinstance(v, (dict, list)) for v in value):
        return flat
    return "[\n" + ",\n".join(inner + layout(v, inner) for v in value) + "\n" + indent + "]"


def randomize(model, seed):
    """Weights that hide nothing: biases and norms are not 0 and 1. They are FP32 numbers, whatever
    the model computes in.
    """
    draw = np.random.default_rng(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            normal = torch.from_numpy(draw.standard_normal(tuple(weight.shape)))
            if name.endswith("norm.weight"):
                normal = 1 + 0.1 * normal
            elif name.endswith("bias"):
                normal = 0.1 * normal
            else:
                normal = normal * weight.shape[-1] ** -0.5
            weight.copy_(normal.float())


def padded(rows, pad):
    """Rows of unlike length as one matrix, padding behind."""
    width = max(len(row) for row in rows)
    return torch.tensor([list(row) + [pad] * (width - len(row)) for row in rows])
