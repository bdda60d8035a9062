#!/usr/bin/env python3
"""Tables of speeds in a document, from the records of `tests/reference/bench_vs_pytorch.py`.

    ci/bench_tables.py docs/devices.md [--check]                 write the tables, or compare them
    ci/bench_tables.py --collect results/data/bench/NAME.json FILE…   put records into one file; may add to it

A ratio is the geometric mean of those of the rounds; the speeds are medians. A table stands between `<!-- bench: NAME.json -->` and `<!-- end of bench -->`; NAME.json is in
results/data/bench. `--check` ends with 1 if a table is not that of its record.
"""

import argparse
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).parent.parent / "results" / "data" / "bench"
TABLE = re.compile(r"(<!-- bench: (\S+) -->\n)(.*?)(<!-- end of bench -->)", re.DOTALL)


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:,.1f}"


def row(record):
    memory = record.get("memory") or {}
    held = f"{memory['zoo'] >> 20:,}, {memory['pytorch'] >> 20:,} MiB" if memory.get("zoo") else ""
    name = record.get("recipe") or record["layer"]
    ratios = ", ".join(f"{ratio:.2f}" for ratio in record["rounds"])
    return [
        name, record.get("shape", ""), record["mode"], f"{number(record['zoo'])} {record['unit']}", number(record["pytorch"]),
        f"{record['ratio']:.2f}", ratios, held,
    ]  # fmt: skip


def table(records):
    head = ["what", "batch", "products", "zoo", "PyTorch", "zoo / PyTorch", "rounds", "memory of zoo, PyTorch"]
    lines = ["| " + " | ".join(head) + " |", "|---|---|---|---:|---:|---:|---|---:|"]
    lines += ["| " + " | ".join(row(record)) + " |" for record in records]
    return "\n".join(lines) + "\n"


def filled(text):
    def of(found):
        records = json.loads((FOLDER / found[2]).read_text(encoding="utf-8"))
        return f"{found[1]}\n{table(records)}\n{found[4]}"

    return TABLE.sub(of, text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--collect", metavar="FILE", type=pathlib.Path)
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    if options.collect:
        records = [record for file in options.files for record in json.loads(file.read_text(encoding="utf-8"))]
        kept = json.loads(options.collect.read_text(encoding="utf-8")) if options.collect.exists() else []
        if any(record not in records for record in kept):
            parser.error(f"{options.collect} has records that are not among these, and they would be lost: use another name")
        options.collect.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
        return 0
    stale = 0
    for file in options.files:
        text = file.read_text(encoding="utf-8")
        due = filled(text)
        if options.check and due != text:
            print(f"error: the tables of {file} are not those of their records: ci/bench_tables.py {file}", file=sys.stderr)
            stale = 1
        elif due != text:
            file.write_text(due, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())
