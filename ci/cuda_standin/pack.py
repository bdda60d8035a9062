#!/usr/bin/env python3
"""Packs the compiled kernels of a home for a machine with the card.

    pack.py HOME OUT.tar.xz

Fill HOME with `STANDIN_COMPILE_ONLY=1 ci/cuda_standin/run.sh CACHE LOG PROGRAM …`. What the tuner
chose and measured there is left out, because no kernel ran. The program on the card must be the same
file: CubeCL's keys contain the build. `KERNELS=OUT.tar.xz ci/gpu.sh` unpacks the archive.
"""

import contextlib
import pathlib
import sqlite3
import sys
import tarfile
import tempfile

# CubeCL's namespaces of PTX by kernel, and of kernels by their source.
KEPT = ("cuda/", "cuda-second-line/")


def without_choices(source: pathlib.Path, target: pathlib.Path) -> int:
    """Copies the kernels of a cache; returns their number."""
    with contextlib.closing(sqlite3.connect(source)) as old:
        with contextlib.closing(sqlite3.connect(target, isolation_level=None)) as new:
            # Through SQLite: a part may still be in the write-ahead log.
            old.backup(new)
            for (namespace,) in new.execute("SELECT DISTINCT namespace FROM entries").fetchall():
                if not namespace.startswith(KEPT):
                    new.execute("DELETE FROM entries WHERE namespace = ?", (namespace,))
            (mode,) = new.execute("PRAGMA journal_mode = DELETE").fetchone()
            assert mode == "delete", f"{target} has a journal beside it: {mode}"
            new.execute("VACUUM")
            (count,) = new.execute("SELECT count(*) FROM entries WHERE namespace LIKE 'cuda/%'").fetchone()
            return count


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    home, out = map(pathlib.Path, sys.argv[1:])
    caches = sorted((home / "kernels").glob("*/*.db"))
    partial = out.with_name(out.name + ".partial")
    total = 0
    try:
        with tempfile.TemporaryDirectory() as folder, tarfile.open(partial, "w:xz", preset=3) as archive:
            for cache in caches:
                # A folder for each build of zoo.
                name = f"{cache.parent.name}/{cache.name}"
                packed = pathlib.Path(folder) / name
                packed.parent.mkdir(exist_ok=True)
                count = without_choices(cache, packed)
                archive.add(packed, name)
                print(f"{name}: {count} kernels")
                total += count
        if total == 0:
            sys.exit(f"error: {home / 'kernels'} has no kernels; run the program on the stand-in first")
        partial.rename(out)
    finally:
        partial.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
