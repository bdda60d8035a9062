"""Training updates of zoo and of PyTorch on the same machine, turn by turn, on full batches of the same shape.

    python bench_vs_pytorch.py --zoo ../../target/release/zoo [--rounds 3] [--steps 4] [--threads 2] [--out FILE.json] [RECIPE…]

A round is PyTorch, zoo, zoo, PyTorch; every block makes the same number of updates after a warm-up of its own. A ratio above 1 means that
zoo is faster: the geometric mean over the rounds. `ci/bench-vs-pytorch.sh` builds zoo and calls this.
"""

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import time

import torch

from fast_transformer import Training

# Full batches that a machine without a GPU can hold, as near to the published number of tokens as it pays to wait for.
SHAPES = {
    "reversal-transformer": "64x51",
    "multi30k-transformer-tiny": "256x16",
    "transformer-base": "32x32",
    "transformer-big": "16x32",
}
MODES = {"fp32": "fp32", "mixed": "bf16"}
WARM_UP = 2


def run_zoo(options, recipe, arm, shape):
    command = [
        options.zoo, "bench", recipe, "--arms", arm, "--shape", shape, "--steps", str(options.steps), "--device", "cpu",
        "--threads", str(options.threads), "--format", "json", "--quiet",
    ]  # fmt: skip
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    laps = found["arms"][0]["laps"]
    seconds, updates = sum(lap["seconds"] for lap in laps), sum(lap["updates"] for lap in laps)
    return seconds / updates, found


def run_pytorch(training, steps):
    for _ in range(WARM_UP):
        training.update()
    begin = time.perf_counter()
    for _ in range(steps):
        training.update()
    return (time.perf_counter() - begin) / steps


def compare(options, recipe, arm, shape):
    shown = subprocess.run(
        [options.zoo, "show", recipe, "--arm", arm, "--format", "json"], check=True, capture_output=True, text=True
    )
    resolved = json.loads(shown.stdout)["recipe"]
    sentences, tokens = map(int, shape.split("x"))
    _, found = run_zoo(options, recipe, arm, shape)
    rows = found["arms"][0]["vocabulary"]
    training = Training(resolved, rows, sentences, tokens, mixed=arm == "mixed")
    ours, theirs, ratios = [], [], []
    for _ in range(options.rounds):
        first = run_pytorch(training, options.steps)
        pair = [run_zoo(options, recipe, arm, shape)[0] for _ in range(2)]
        last = run_pytorch(training, options.steps)
        ours += pair
        theirs += [first, last]
        ratios.append((first + last) / sum(pair))
    of_update = 2 * sentences * tokens
    middle = lambda times: of_update / sorted(times)[len(times) // 2]  # noqa: E731
    return {
        "recipe": recipe,
        "arm": arm,
        "mode": MODES[arm],
        "shape": shape,
        "zoo": round(middle(ours), 1),
        "pytorch": round(middle(theirs), 1),
        "unit": "tokens/s",
        "ratio": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3),
        "rounds": [round(ratio, 3) for ratio in ratios],
        "parameters": {"zoo": found["arms"][0]["parameters"], "pytorch": training.parameters()},
        "machine": {
            "processor": found["hardware"],
            "threads": options.threads,
            "pytorch": torch.__version__,
            "zoo": found["environment"]["commit"],
            "system": platform.platform(terse=True),
        },
    }


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--zoo", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--arms", default="fp32,mixed")
    parser.add_argument("--out")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found = []
    print("| recipe | batch | products | zoo tokens/s | PyTorch tokens/s | zoo / PyTorch | rounds |")
    print("|---|---|---|---:|---:|---:|---|", flush=True)
    for recipe in options.recipes or SHAPES:
        for arm in options.arms.split(","):
            row = compare(options, recipe, arm, SHAPES[recipe])
            found.append(row)
            print(
                f"| {recipe} | {row['shape']} | {row['mode']} | {row['zoo']:,.0f} | {row['pytorch']:,.0f} | {row['ratio']:.2f} | "
                f"{', '.join(f'{ratio:.2f}' for ratio in row['rounds'])} |",
                flush=True,
            )
    if options.out:
        with open(options.out, "x", encoding="utf-8") as file:
            json.dump(found, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    sys.exit(main())
