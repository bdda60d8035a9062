"""Moses tokenisation and BPE of one core against the Hugging Face tokenizers library (`pip install
tokenizers`).

    python bench_text.py --text FILE --example ../../target/release/examples/text_speed

Both encode the same tokenised lines with the same merges, and must find the same pieces; the
fastest of several passes counts. The library has no Moses tokenizer; its own splitting at white
space and punctuation (a simpler task) stands beside it.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer, models, pre_tokenizers  # noqa: E402

PASSES = 7


def fastest(work):
    least, made = float("inf"), None
    for _ in range(PASSES):
        begin = time.perf_counter()
        made = work()
        least = min(least, time.perf_counter() - begin)
    return least, made


def library(folder):
    """The library's BPE with the merges that zoo learnt; `</w>` marks the end of a word in both."""
    merges = [tuple(line.split()) for line in (folder / "codes").read_text().splitlines() if not line.startswith("#")]
    letters = {letter for line in (folder / "tokenised").open() for word in line.split() for letter in word}
    pieces = letters | {letter + "</w>" for letter in letters} | {left + right for left, right in merges}
    model = models.BPE(vocab={piece: i for i, piece in enumerate(sorted(pieces))}, merges=merges, end_of_word_suffix="</w>")
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer


def marked(tokens):
    """`</w>` behind a word's last piece as `@@` behind all the others."""
    return " ".join(token.removesuffix("</w>") if token.endswith("</w>") else token + "@@" for token in tokens)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--text", required=True)
    parser.add_argument("--example", required=True)
    parser.add_argument("--merges", default="10000")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        command = [options.example, options.text, folder, options.merges]
        shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        zoo = {found["step"]: found["lines_per_second"] for found in map(json.loads, shown.splitlines())}
        lines = (folder / "tokenised").read_text().split("\n")
        tokenizer = library(folder)
        encode, encoded = fastest(lambda: tokenizer.encode_batch(lines))
        expected = (folder / "encoded").read_text().split("\n")
        unlike = sum(marked(ours.tokens) != theirs for ours, theirs in zip(encoded, expected, strict=True))
        raw = Path(options.text).read_text().splitlines()
        splitter = pre_tokenizers.Whitespace()
        split, _ = fastest(lambda: [splitter.pre_tokenize_str(line) for line in raw])
    theirs = {"tokenise": len(raw) / split, "encode": len(lines) / encode}
    print("| step | zoo lines/s | tokenizers lines/s | zoo / tokenizers |")
    print("|---|---:|---:|---:|")
    for step, speed in zoo.items():
        print(f"| {step} | {speed:,.0f} | {theirs[step]:,.0f} | {speed / theirs[step]:.2f} |")
    print(f"{unlike} of {len(lines)} lines are encoded otherwise")


if __name__ == "__main__":
    main()
