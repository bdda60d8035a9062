"""Training updates and layers of zoo and of PyTorch on the same machine, turn by turn, on full
batches of the same shape.

    python bench_vs_pytorch.py --bin ../../target/release [--rounds 3] [--steps 4] [--threads 2] [--out FILE.json] [RECIPE or LAYER…]
    python bench_vs_pytorch.py --bin ../../target/release decoding:gnmt-v2
    python bench_vs_pytorch.py --bin ../../target/gpu/release --device cuda:0 --modes fp32,tf32,fp16,bf16 transformer-base

A round is PyTorch, zoo, zoo, PyTorch; every block makes the same number of updates after a warm-up
of its own. A ratio above 1 means that zoo is faster: the geometric mean over the rounds.
`decoding:RECIPE` is a beam search with fresh weights. Layers are forward and backward passes, the
median of a block's. `ci/bench-vs-pytorch.sh` builds zoo and calls this. `memory` is the most that a
process of its own had resident over some updates, libraries included; on a GPU, the most that it held there. FP16 is for GPUs: zoo has the loss scale
of the recipe's arm `mixed`, PyTorch that of its AMP.
"""

import argparse
import json
import math
import multiprocessing
import os
import platform
import subprocess
import sys
import time

import torch

import fast_acoustic
import fast_classifier
import fast_language
import fast_synthesis
import fast_text
import fast_transformer
from fast_decoding import Decoding
from fast_layers import LAYERS, Layer
import products
from products import SCALE, built, wait

# Full batches that a machine without a GPU can hold, as near to the published number of tokens as
# it pays to wait for.
SHAPES = {
    "reversal-transformer": "64x51",
    "multi30k-transformer-tiny": "256x16",
    "transformer-base": "32x32",
    "transformer-big": "16x32",
    "gnmt-v2": "16x32",
    "convs2s": "16x32",
    # Utterances of four seconds.
    "wave2letter-plus": "4x400",
    "deepspeech2-large": "4x400",
    "jasper-10x5": "4x400",
    # And four and a half.
    "tacotron2": "4x400",
    "tacotron2-nvidia": "4x400",
    # Pictures, and rows of a picture.
    "fashion-mnist-lenet-d2l": "256x28",
    "mnist-lenet-caffe": "64x28",
    "mnist-mlp-keras": "128x28",
    "mnist-cnn-keras": "128x28",
    # Rows and steps of a window.
    "ptb-lstm-small": "20x20",
    "ptb-lstm-medium": "20x35",
    "ptb-lstm-pytorch": "20x35",
    "ptb-lstm-pytorch-tied": "20x35",
    # Texts and positions, of the recipes' own batches. The longest question decides those of
    # `trec-cnn-kim`; here it has 37 words.
    "imdb-fasttext-keras": "32x400",
    "imdb-cnn-keras": "32x400",
    "imdb-bilstm-keras": "32x100",
    "imdb-cnn-lstm-keras": "30x100",
    "trec-cnn-kim": "50x45",
}
# The batches of a GPU: the published numbers of tokens.
GPU_SHAPES = {
    "multi30k-transformer-tiny": "256x16",
    "transformer-base": "128x32",
    "transformer-big": "128x32",
    "gnmt-v2": "128x32",
    "convs2s": "128x32",
    # Utterances of sixteen seconds, and of four and a half.
    "wave2letter-plus": "32x1600",
    "deepspeech2-large": "16x1600",
    "tacotron2": "32x400",
    "ptb-lstm-small": "20x20",
    "ptb-lstm-pytorch": "20x35",
    "ptb-lstm-pytorch-tied": "20x35",
    # For a dry run.
    "reversal-transformer": "64x51",
}
# Recipe, search, sentences and tokens; what is written is as long as its source. Texts are spoken
# for so many frames.
DECODING = {"gnmt-v2": ("beam5", "16x32"), "convs2s": ("beam5", "16x32"), "tacotron2-nvidia": ("free", "4x200")}
# Types of the products. In bf16, PyTorch has autocast; neither scales the loss.
MODES = ["fp32", "bf16"]
WARM_UP = 2


def of_mode(mode):
    if mode == "fp16":
        return ["--arms", "mixed"]
    products = "fp32" if mode == "tf32" else mode
    return ["--arms", "fp32", "--set", f"precision.compute={products}", "--fp32", "tf32" if mode == "tf32" else "strict"]


def run_zoo(options, recipe, mode, shape):
    command = [
        f"{options.bin}/zoo", "bench", recipe, *of_mode(mode), "--shape", shape, "--steps", str(options.steps), "--device", options.device,
        "--threads", str(options.threads), "--format", "json", "--quiet",
    ]  # fmt: skip
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    laps = found["arms"][0]["laps"]
    seconds, updates = sum(lap["seconds"] for lap in laps), sum(lap["updates"] for lap in laps)
    return seconds / updates, found


def run_pytorch(training, steps):
    for _ in range(WARM_UP):
        training.update()
    wait()
    begin = time.perf_counter()
    for _ in range(steps):
        training.update()
    wait()
    return (time.perf_counter() - begin) / steps


def is_speech(resolved):
    return resolved["data"].get("features") is not None


def speaks(resolved):
    return resolved["model"]["decoder"]["kind"] == "tacotron" if "decoder" in resolved["model"] else False


def sees(resolved):
    return resolved["recipe"]["task"] == "image-classification"


def sorts_texts(resolved):
    return resolved["recipe"]["task"] == "text-classification"


def continues(resolved):
    return resolved["recipe"]["task"] == "language-modelling"


def unit_of(resolved):
    if continues(resolved):
        return "words/s"
    if sorts_texts(resolved):
        return "texts/s"
    return "pictures/s" if sees(resolved) else "frames/s" if is_speech(resolved) else "tokens/s"


def training_of(resolved, *shape):
    of = fast_synthesis if speaks(resolved) else fast_acoustic if is_speech(resolved) else fast_transformer
    if sees(resolved):
        of = fast_classifier
    if continues(resolved):
        of = fast_language
    if sorts_texts(resolved):
        of = fast_text
    with built():
        return of.Training(resolved, *shape)


def pytorch_memory(device, threads, steps, *training):
    """Most bytes resident; to be called in a fresh process."""
    torch.set_num_threads(threads)
    products.use(device)
    run_pytorch(training_of(*training), steps)
    if device != "cpu":
        return on_gpu(device)
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))


def on_gpu(device):
    """Bytes of a GPU that are taken, by this process among others."""
    if device == "cpu":
        return 0
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", device.partition(":")[2] or "0"]
    return int(subprocess.run(query, check=True, capture_output=True, text=True).stdout) << 20


def shown(options, recipe):
    command = [f"{options.bin}/zoo", "show", recipe, "--arm", "fp32", "--format", "json"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["recipe"]


def compare(options, recipe, mode, shape):
    resolved = shown(options, recipe)
    sentences, tokens = map(int, shape.split("x"))
    # What an earlier comparison's models had.
    if products.device.type == "cuda":
        torch.cuda.empty_cache()
    elsewhere = on_gpu(options.pytorch_device)
    _, found = run_zoo(options, recipe, mode, shape)
    described = (resolved, found["arms"][0]["vocabulary"], sentences, tokens, mode)
    with multiprocessing.get_context("spawn").Pool(1) as fresh:
        memory = fresh.apply(pytorch_memory, (options.pytorch_device, options.threads, options.steps, *described))
    training = training_of(*described)
    scaler = getattr(training, "scaler", None)
    rows = turns(
        options.rounds,
        lambda: run_zoo(options, recipe, mode, shape)[0],
        lambda: run_pytorch(training, options.steps),
        sentences * {"tokens/s": 2 * tokens, "frames/s": tokens, "words/s": tokens, "pictures/s": 1, "texts/s": 1}[unit_of(resolved)],
    )
    if mode == "fp16" and (scaler is None or scaler.get_scale() < SCALE):
        raise SystemExit(f"{recipe}: PyTorch's updates have no loss scale, or some were left out")
    return {
        "recipe": recipe,
        "mode": mode,
        "shape": shape,
        **rows,
        "unit": unit_of(resolved),
        "memory": {"zoo": found["peak_memory_bytes"] and max(found["peak_memory_bytes"] - elsewhere, 0), "pytorch": max(memory - elsewhere, 0)},
        "parameters": {"zoo": found["arms"][0]["parameters"], "pytorch": training.parameters()},
        "machine": machine(options, found),
    }


def compare_decoding(options, recipe, mode):
    search, shape = DECODING[recipe]
    command = [
        f"{options.bin}/zoo", "bench", recipe, *of_mode(mode), "--decode", search, "--shape", shape, "--steps", str(options.steps),
        "--device", options.device, "--threads", str(options.threads), "--format", "json", "--quiet",
    ]  # fmt: skip

    def zoo():
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        laps = found["arms"][0]["laps"]
        return sum(laps) / len(laps), found

    _, found = zoo()
    sentences, tokens = map(int, shape.split("x"))
    written = options.steps * sentences * tokens
    if found["arms"][0]["tokens"] < 0.9 * written:
        raise SystemExit(f"{recipe}: random weights ended early, {found['arms'][0]['tokens']} tokens of {written}")
    resolved = shown(options, recipe)
    described = (resolved, found["arms"][0]["vocabulary"], sentences, tokens, mode)
    decoding = fast_synthesis.Speaking(*described) if speaks(resolved) else Decoding(*described, found["spec"].get("beam", 1))
    decoding.batch()

    def pytorch():
        begin = time.perf_counter()
        for _ in range(options.steps):
            decoding.batch()
        return (time.perf_counter() - begin) / options.steps

    rows = turns(options.rounds, lambda: zoo()[0], pytorch, sentences)
    return {
        "recipe": f"decoding:{recipe}",
        "search": search,
        "mode": mode,
        "shape": shape,
        **rows,
        "unit": "sentences/s",
        "parameters": {"zoo": found["arms"][0]["parameters"], "pytorch": decoding.parameters()},
        "machine": machine(options, found),
    }


def compare_layer(options, name, mode, about):
    layer = Layer(name, bf16=mode == "bf16")
    if not layer.ways:
        return None
    command = [f"{options.bin}/examples/layers", "--mode", mode, "--repetitions", str(options.repetitions), name]
    environment = os.environ | {"RAYON_NUM_THREADS": str(options.threads)}

    def zoo():
        found = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
        return json.loads(found)["seconds"]

    rows = turns(options.rounds, zoo, lambda: layer.seconds(options.repetitions), 1)
    return {"layer": name, "mode": mode, **rows, "unit": "passes/s", "machine": machine(options, about)}


def turns(rounds, zoo, pytorch, work):
    """Speeds of both, in so much work a second, and their ratio."""
    ours, theirs, ratios = [], [], []
    for _ in range(rounds):
        first = pytorch()
        pair = [zoo(), zoo()]
        last = pytorch()
        ours += pair
        theirs += [first, last]
        ratios.append((first + last) / sum(pair))
    middle = lambda times: work / sorted(times)[len(times) // 2]  # noqa: E731
    return {
        "zoo": round(middle(ours), 1),
        "pytorch": round(middle(theirs), 1),
        "ratio": round(math.exp(sum(map(math.log, ratios)) / len(ratios)), 3),
        "rounds": [round(ratio, 3) for ratio in ratios],
    }


def machine(options, found):
    return {
        "processor": found["hardware"],
        "threads": options.threads,
        "pytorch": torch.__version__,
        "zoo": found["environment"]["commit"],
        "system": platform.platform(terse=True),
    }


def write(path, found):
    """All rows so far: a run that is cut off leaves those that it measured."""
    with open(f"{path}.part", "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
        file.write("\n")
    os.replace(f"{path}.part", path)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--bin", required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--repetitions", type=int, default=10)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N; layers are for the CPU")
    parser.add_argument("--pytorch-device", help="another device for PyTorch, to try the script without a GPU")
    parser.add_argument("--shape", help="full batches of this shape instead of the usual ones")
    parser.add_argument("--out")
    parser.add_argument("recipes", nargs="*", metavar="RECIPE or LAYER")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    options.pytorch_device = options.pytorch_device or options.device
    products.use(options.pytorch_device)
    shapes = SHAPES if options.device == "cpu" else GPU_SHAPES
    if options.out and os.path.exists(options.out):
        parser.error(f"{options.out} is there already: records are not overwritten")
    found = []
    print("| what | batch | products | unit | zoo | PyTorch | zoo / PyTorch | rounds | memory, MB |")
    print("|---|---|---|---|---:|---:|---:|---|---|", flush=True)
    # A short one, for what zoo says of itself and of the machine.
    about = run_zoo(options, "reversal-transformer", "fp32", "4x8")[1]
    decodings = [f"decoding:{recipe}" for recipe in DECODING]
    for name in options.recipes or ([*SHAPES, *decodings, *LAYERS] if options.device == "cpu" else shapes):
        for mode in options.modes.split(","):
            if options.device != "cpu" and name not in shapes:
                parser.error(f"{name} is compared on a CPU only; on a GPU: {', '.join(shapes)}")
            if name in LAYERS:
                row = compare_layer(options, name, mode, about)
            elif name in decodings:
                row = compare_decoding(options, name.removeprefix("decoding:"), mode)
            else:
                row = compare(options, name, mode, options.shape or shapes[name])
            if row is None:
                continue
            found.append(row)
            if options.out:
                write(options.out, found)
            memory = ", ".join(f"{bytes >> 20:,}" for bytes in row.get("memory", {}).values() if bytes is not None)
            print(
                f"| {name} | {row.get('shape', '')} | {row['mode']} | {row['unit']} | {row['zoo']:,.1f} | {row['pytorch']:,.1f} | "
                f"{row['ratio']:.2f} | {', '.join(f'{ratio:.2f}' for ratio in row['rounds'])} | "
                f"{memory} |",
                flush=True,
            )


if __name__ == "__main__":
    sys.exit(main())
