#!/usr/bin/env python3
"""The table of what each mechanism of mixed precision is worth, from the ledger.

    ci/variant_tables.py docs/mixed-precision.md [--check]    write the table, or compare it

A row is an own check of a recipe whose name ends in `-precision`, `-finetuned` or `-large-batch`, as
its newest judged record of the published size has it. Checks of arms that were not run have none. The
table stands between `<!-- variants -->` and `<!-- end of variants -->`. `--check` ends with 1 if it is
not that of the ledger.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys

LEDGER = pathlib.Path(__file__).parent.parent / "results" / "data" / "ledger.jsonl"
TABLE = re.compile(r"(<!-- variants -->\n)(.*?)(<!-- end of variants -->)", re.DOTALL)
HEAD = ["system", "arm", "metric", "seeds", "baseline", "arm's mean", "worse by", "bounds", "margin", "verdict"]
SUFFIXES = ("-precision", "-finetuned", "-large-batch")
# A free key of the recipes: the same recordings in a folder instead of the archive.
FREE = {"data.reader.folder"}


def judged():
    """The newest judged record of each recipe, in the order of the ledger."""
    newest = {}
    for line in LEDGER.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        changed = record["tier"] or record["overrides"].keys() - FREE or record["end"] != "finished"
        if record["recipe"].endswith(SUFFIXES) and not changed and record["judgements"]:
            newest[record["recipe"]] = record
    return newest.values()


def number(value):
    if value is None:
        return ""
    # Less is rounding, of means of the same scores.
    if abs(value) < 1e-12:
        value = 0.0
    return f"{value:.4f}" if 0.0 < abs(value) < 0.1 else f"{value:.2f}"


def row(record, claim, verdict):
    def mean(arm):
        found = [
            score["value"] for score in record["scores"]
            if (score["arm"], score["metric"], score["eval"]) == (arm, claim["metric"], claim["eval"])
        ]  # fmt: skip
        return number(statistics.fmean(found)) if found else ""

    bounds = [number(verdict.get(key)) for key in ("shortfall_low", "shortfall_high")]
    return [
        record["recipe"].removesuffix("-precision"), f"`{claim['arm']}`", claim["metric"], str(verdict["seeds"]),
        f"{mean(claim['baseline'])}", mean(claim["arm"]), number(verdict.get("shortfall")),
        " to ".join(bounds) if all(bounds) else "", number(verdict.get("margin")), verdict["outcome"].replace("-", " "),
    ]  # fmt: skip


def table():
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|---|---:|---:|---:|---:|---|---:|---|"]
    for record in judged():
        for judgement in record["judgements"]:
            claim = judgement["claim"]
            if claim["kind"] == "parity" and judgement["verdict"]["outcome"] != "NOT-RUN":
                lines.append("| " + " | ".join(row(record, claim, judgement["verdict"])) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("file", type=pathlib.Path)
    options = parser.parse_args()
    text = options.file.read_text(encoding="utf-8")
    due = TABLE.sub(lambda found: f"{found[1]}\n{table()}\n{found[3]}", text)
    if options.check and due != text:
        print(f"error: the table of {options.file} is not that of the ledger: ci/variant_tables.py {options.file}", file=sys.stderr)
        return 1
    if due != text:
        options.file.write_text(due, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
