#!/usr/bin/env python3
"""Tables of what was checked and timed on a device in documents, from outputs of zoo.

    ci/device_tables.py docs/devices.md [--check]      write the tables, or compare them

Tables stand between `<!-- device: NAME -->` and `<!-- end of device -->`. The records of NAME are in
results/data/devices/NAME: kernels*.json are of `zoo verify --kernels`, parity*.json of `zoo verify --to
parity`, bench-*.json of `zoo bench`, profile-*.json of `zoo bench --kernels`, decoding-*.json of `zoo bench
--decode`.
ci/gpu-record.sh copies those of a GPU. `--check` ends with 1 if a table is not that of its records.
"""

import argparse
import json
import pathlib
import re
import statistics
import sys

FOLDER = pathlib.Path(__file__).parent.parent / "results" / "data" / "devices"
TABLES = re.compile(r"(<!-- device: (\S+) -->\n)(.*?)(<!-- end of device -->)", re.DOTALL)
# Kinds of kernels that a row of a profile names.
NAMED = 4


def table(head, rows):
    """Columns of numbers begin with `#`."""
    lines = ["| " + " | ".join(title.lstrip("#") for title in head) + " |"]
    lines.append("|" + "|".join("---:" if title.startswith("#") else "---" for title in head) + "|")
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def records(folder, pattern):
    """The documents of a folder by name. Old programs printed lists, which are left out."""
    for file in sorted(folder.glob(pattern)):
        record = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(record, dict):
            yield file.stem, record


def kernels(folder):
    rows = []
    for name, record in records(folder, "kernels*.json"):
        found = record["operations"]
        worst = max(found, key=lambda row: row["error"] / row["limit"])
        hold = sum(row["holds"] for row in found)
        rows.append([
            f"`{name}`", str(len(found)), "all" if hold == len(found) else str(hold),
            f"{worst['error']:.1e} of {worst['limit']:.0e} ({worst['operation']})",
        ])  # fmt: skip
    return table(["own kernels", "#rows", "#hold", "largest share of a limit"], rows) if rows else ""


def fixtures(folder):
    rows = []
    for name, record in records(folder, "parity*.json"):
        for recipe in record["recipes"]:
            last = recipe["rungs"][-1]
            rows.append([f"`{name}`", recipe["recipe"], "yes" if last["holds"] else f"until {last['rung']}", last["what"]])
    return table(["fixtures", "recipe", "hold", "last check"], rows) if rows else ""


def speeds(folder):
    rows = []
    for name, record in records(folder, "bench-*.json"):
        peak = record.get("peak_memory_bytes")
        for arm in record["arms"]:
            update, speed = arm["seconds_per_update"], arm["tokens_per_second"]
            # FP32 stands for TF32 where the program was told so; the step's name says it.
            products = "tf32" if name.endswith("-tf32") else arm["compute"]
            rows.append([
                record["recipe"], record["data"], arm["arm"], products, f"{1e3 * update['median']:,.1f} ms",
                f"{speed['median']:,.0f} {record['unit']}/s", f"{peak >> 20:,} MiB" if peak else "-",
            ])  # fmt: skip
    head = ["speed", "batches", "arm", "products", "#an update", "#speed", "#peak memory"]
    return table(head, rows) if rows else ""


def profiles(folder):
    rows = []
    for _, record in records(folder, "profile-*.json"):
        for arm in record["arms"]:
            found = arm["kernels"]
            timed = [kernel["seconds"] for kernel in found]
            device = None if None in timed else sum(timed)
            named = ", ".join(
                kernel["kernel"] + (f" {kernel['seconds'] / device:.0%}" if device else "") for kernel in found[:NAMED]
            )
            rows.append([
                record["recipe"], record["data"], arm["arm"], arm["compute"], f"{arm['tokens']:,} {record['unit']}",
                f"{sum(kernel['launches'] for kernel in found):,}", f"{1e3 * device:,.1f} ms" if device else "-",
                f"{1e3 * arm['seconds']:,.1f} ms", named,
            ])  # fmt: skip
    head = ["profile", "batches", "arm", "products", "#an update", "#launches", "#kernels take", "#the update takes", "most of it"]
    return table(head, rows) if rows else ""


def decodings(folder):
    rows = []
    types = []
    for _, record in records(folder, "decoding-*.json"):
        cells = {}
        for arm in record["arms"]:
            laps = [1e3 * seconds for seconds in arm["laps"]]
            cells[arm["compute"]] = f"{statistics.median(laps):,.0f} ({min(laps):,.0f} to {max(laps):,.0f})"
        types += [one for one in cells if one not in types]
        million = record["arms"][0]["parameters"] / 1e6
        rows.append((million, [record["recipe"], record["search"], record["shape"], f"{million:.1f}"], cells))
    head = ["recipe", "search", "batch", "#million parameters", *(f"#{one}, ms" for one in types)]
    filled = [start + [cells.get(one, "-") for one in types] for _, start, cells in sorted(rows, key=lambda row: row[0])]
    return table(head, filled) if rows else ""


PARTS = (kernels, fixtures, speeds, profiles, decodings)


def filled(text):
    def of(found):
        folder = FOLDER / found[2]
        if not folder.is_dir():
            sys.exit(f"error: {folder} does not exist, but a document has its tables")
        tables = [made for part in PARTS if (made := part(folder))]
        return f"{found[1]}\n" + "\n".join(tables) + f"\n{found[4]}"

    return TABLES.sub(of, text)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    for file in options.files:
        text = file.read_text(encoding="utf-8")
        made = filled(text)
        if not options.check:
            file.write_text(made, encoding="utf-8")
        elif made != text:
            sys.exit(f"error: the tables of {file} are not those of their records: run ci/device_tables.py {file}")


if __name__ == "__main__":
    main()
