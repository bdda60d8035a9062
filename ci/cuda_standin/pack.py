#!/usr/bin/env python3
"""Packs the compiled kernels of a home for a machine with the card.

    pack.py HOME OUT.tar.xz

Fill HOME with `STANDIN_COMPILE_ONLY=1 ci/cuda_standin/run.sh CACHE LOG PROGRAM …`. What the tuner
chose and measured there is left out, because no kernel ran. The program on the card must be the same
file: CubeCL's keys contain the build. `KERNELS=OUT.tar.xz ci/gpu.sh` unpacks the archive.
"""

import pathlib
import sqlite3
import sys
import tarfile
import tempfile

# CubeCL's namespaces of PTX by kernel, and of kernels by their source.
KEPT = ("cuda/", "cuda-second-line/")


def without_choices(source: pathlib.Path, target: pathlib.Path) -> int:
    """Copies the kernels of a cache; returns their number."""
    # Through SQLite: a part may still be in the write-ahead log.
    with sqlite3.connect(source) as old, sqlite3.connect(target) as new:
        old.backup(new)
    new = sqlite3.connect(target, isolation_level=None)
    for (namespace,) in new.execute("SELECT DISTINCT namespace FROM entries").fetchall():
        if not namespace.startswith(KEPT):
            new.execute("DELETE FROM entries WHERE namespace = ?", (namespace,))
    new.execute("PRAGMA journal_mode = DELETE")
    new.execute("VACUUM")
    (count,) = new.execute("SELECT count(*) FROM entries WHERE namespace LIKE 'cuda/%'").fetchone()
    new.close()
    return count


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    home, out = map(pathlib.Path, sys.argv[1:])
    caches = sorted((home / "kernels").glob("*.db"))
    if not caches:
        sys.exit(f"error: {home / 'kernels'} has no kernels; run the program on the stand-in first")
    partial = out.with_name(out.name + ".partial")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(partial, "w:xz", preset=3) as archive:
        for cache in caches:
            count = without_choices(cache, pathlib.Path(folder) / cache.name)
            archive.add(pathlib.Path(folder) / cache.name, cache.name)
            print(f"{cache.name}: {count} kernels")
    partial.rename(out)


if __name__ == "__main__":
    main()
