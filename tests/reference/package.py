"""Reads packages with Hugging Face's own clients: python3 tests/reference/package.py FOLDER…

safetensors reads the weights, huggingface_hub the model card. A check fails with the file and what is
wrong with it. Needs no network. Packages: safetensors, huggingface_hub, numpy.
"""

import hashlib
import json
import pathlib
import sys

import numpy as np
from huggingface_hub import ModelCard
from safetensors import safe_open


def weights(folder):
    """Every array is FP32 and finite; the metadata names the run."""
    file = folder / "model.safetensors"
    values = 0
    with safe_open(file, framework="numpy") as arrays:
        about = arrays.metadata()
        for name in arrays.keys():
            array = arrays.get_tensor(name)
            assert array.dtype == np.float32, f"{file}: {name} is {array.dtype}"
            assert np.isfinite(array).all(), f"{file}: {name} is not finite"
            values += array.size
    run = json.loads((folder / "run.json").read_text())
    assert about["format"] == "pt" and about["arm"] == run["arm"] and about["seed"] == str(run["seed"]), about
    return values


def card(folder):
    """The metadata is valid for the hub, and each result has task, set, metric and value."""
    file = folder / "README.md"
    found = ModelCard.load(file)
    data = found.data
    assert data.library_name == "zoo" and data.pipeline_tag, f"{file}: {data.to_dict()}"
    results = data.eval_results or []
    for result in results:
        assert result.task_type == data.pipeline_tag, f"{file}: {result}"
        assert isinstance(result.metric_value, (int, float)), f"{file}: {result}"
        assert result.metric_args["signature"], f"{file}: {result}"
    if results:
        assert data.model_name and data.model_name in found.text.splitlines()[0] + found.text, file
    # What the client writes again has the same facts.
    again = ModelCard(str(found)).data.to_dict()
    assert again == data.to_dict(), f"{file}: the client changes it"
    return results


def digests(folder):
    """`zoo.json` lists every file with its size and digest."""
    listed = json.loads((folder / "zoo.json").read_text())["files"]
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert there == {*listed, "zoo.json"}, there ^ {*listed, "zoo.json"}
    for name, file in listed.items():
        data = (folder / name).read_bytes()
        assert len(data) == file["bytes"] and hashlib.sha256(data).hexdigest() == file["sha256"], name


def main():
    folders = [pathlib.Path(name) for name in sys.argv[1:]]
    if not folders:
        sys.exit(__doc__)
    for folder in folders:
        digests(folder)
        values, results = weights(folder), card(folder)
        scores = ", ".join(
            f"{result.metric_type} {result.metric_value:.2f}" for result in results
        )
        print(f"{folder}: {values:,} values; {scores or 'no scores'}")


if __name__ == "__main__":
    main()
