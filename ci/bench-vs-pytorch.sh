#!/usr/bin/env bash
# Training updates and layers of zoo against PyTorch's on this machine's CPU, turn by turn: a table,
# and results/data/bench/NAME.json.
#
#   ci/bench-vs-pytorch.sh NAME [options of tests/reference/bench_vs_pytorch.py]
#
# PYTHON names an interpreter with PyTorch (python3). Times mean something on a machine that does
# nothing else.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:?give the record a name, e.g. cpu-2026-11}
shift
cargo build --release --locked
cargo build --release --locked --workspace --example layers
mkdir -p results/data/bench
"${PYTHON:-python3}" tests/reference/bench_vs_pytorch.py --bin "${CARGO_TARGET_DIR:-target}/release" --out "results/data/bench/$name.json" "$@"
