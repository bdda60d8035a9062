"""Reads the Parquet files of `zoo ledger export` and `zoo list --claims` with pyarrow, and compares
every value with the JSON of the same command.

    python3 tests/reference/tables.py BINARY [LEDGER]      # pip install pyarrow

Exit codes: 0, all values are equal; 1, one differs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow
import pyarrow.parquet as parquet


def read(binary, command, key, folder):
    """The rows of a command as Parquet has them, and as JSON has them."""
    file = Path(folder) / f"{key}.parquet"
    subprocess.run([binary, *command, "--out", file], check=True, stderr=subprocess.DEVNULL)
    text = subprocess.run([binary, *command, "--format", "json"], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout
    return parquet.read_table(file), json.loads(text)[key]


def differences(table, rows):
    """Cells that differ. Lists are texts in Parquet."""
    if table.num_rows != len(rows):
        yield f"{table.num_rows} rows, not {len(rows)}"
        return
    if rows and table.column_names != list(rows[0]):
        yield f"the columns are {table.column_names}, not {list(rows[0])}"
        return
    for at, (ours, theirs) in enumerate(zip(table.to_pylist(), rows)):
        for name, value in theirs.items():
            if isinstance(value, list):
                value = "; ".join(value)
            if ours[name] != value or isinstance(ours[name], bool) != isinstance(value, bool):
                yield f"row {at}, {name}: {ours[name]!r}, not {value!r}"


def main():
    binary, ledger = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "results/data/ledger.jsonl"
    export = ["ledger", "export", "--ledger", ledger]
    commands = {
        "verdicts": export,
        "scores": [*export, "--rows", "scores"],
        "claims": ["list", "--claims"],
    }
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for key, command in commands.items():
            table, rows = read(binary, command, key, folder)
            found = list(differences(table, rows))
            failed |= bool(found)
            print(f"{key}: {table.num_rows} rows of {table.num_columns} columns, {len(found)} values differ")
            print("\n".join(found[:10]), end="\n" if found else "")
    print(f"pyarrow {pyarrow.__version__}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
