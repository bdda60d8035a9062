"""Makes the figures of docs/figures again, or compares new ones with them.

    python3 ci/figures.py target/release/zoo            # write the figures
    python3 ci/figures.py target/release/zoo --check    # exit code 1 if a figure differs

Each figure is an SVG of `zoo profile`, with the numbers behind it as CSV. A processor with other
instructions sums in another order, so values at a power of two may fall on its other side: --check
compares the shares, which must agree within 0.5 percent of all values. It needs the same quantities,
updates and layers. Without the data of a figure (ZOO_MIRROR), the check says so and goes on.
"""

import csv
import io
import os
import pathlib
import subprocess
import sys
import tempfile

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "docs" / "figures"

# Name of the figure, arguments of `zoo profile`, whether it needs data of a mirror.
FIGURES = [
    ("reversal-transformer", ["reversal-transformer", "--tier", "smoke"], False),
    ("fashion-mnist-lenet-d2l", ["fashion-mnist-lenet-d2l-precision", "--arm", "fp32", "--update", "1,100"], True),
]

# Columns that count values, of the column `values`.
COUNTS = ["zero", "not_finite", "lost", "subnormal", "above", "lost_scaled", "subnormal_scaled",
          "above_scaled", "2048_and_more"]
TOLERANCE = 0.005


def made(zoo, arguments, home):
    """The SVG and the CSV of a profile."""
    with tempfile.TemporaryDirectory() as folder:
        svg = pathlib.Path(folder) / "figure.svg"
        command = [zoo, "profile", *arguments, "--svg", str(svg), "--format", "csv", "--yes", "--home", home]
        table = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return svg.read_text(), table


def key(row):
    return row["quantity"], row["update"], row["layer"]


def differences(kept, new):
    """What differs between two tables, in words."""
    kept, new = ({key(row): row for row in csv.DictReader(io.StringIO(text))} for text in (kept, new))
    if kept.keys() != new.keys():
        yield f"other rows: {sorted(kept.keys() ^ new.keys())[:3]}"
        return
    for name, row in kept.items():
        values = int(row["values"])
        if values != int(new[name]["values"]):
            yield f"{name}: {new[name]['values']} values, not {values}"
            continue
        for column in COUNTS:
            one, other = row[column], new[name][column]
            if (one == "") != (other == ""):
                yield f"{name}, {column}: {other!r}, not {one!r}"
            elif one and abs(int(one) - int(other)) > max(1, TOLERANCE * values):
                yield f"{name}, {column}: {other} of {values} values, not {one}"


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--check"]):
        sys.exit(__doc__)
    zoo, check = sys.argv[1], sys.argv[2:] == ["--check"]
    failed = False
    with tempfile.TemporaryDirectory() as home:
        for name, arguments, needs_data in FIGURES:
            if needs_data and not os.environ.get("ZOO_MIRROR"):
                print(f"docs/figures/{name}: not checked, ZOO_MIRROR is not set")
                continue
            svg, table = made(zoo, arguments, home)
            files = FOLDER / f"{name}.svg", FOLDER / f"{name}.csv"
            if not check:
                FOLDER.mkdir(exist_ok=True)
                files[0].write_text(svg)
                files[1].write_text(table)
                print(f"docs/figures/{name}: written")
                continue
            found = list(differences(files[1].read_text(), table))
            # The bars and numbers may differ, the panels may not.
            panels = [text.count("share of all values") for text in (svg, files[0].read_text())]
            if panels[0] != panels[1]:
                found.append(f"{panels[0]} panels, not {panels[1]}")
            for difference in found[:5]:
                print(f"docs/figures/{name}: {difference}", file=sys.stderr)
            failed |= bool(found)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
