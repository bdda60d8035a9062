#!/usr/bin/env bash
# Builds with CUDA, runs the checks that need a GPU, and a small run in both arms. Records are written to $OUT.
#
#   OUT=folder ci/gpu.sh
#
# Needs a CUDA driver, NVRTC and the toolkit's headers (CUDA_PATH, or /usr/local/cuda). The build has a target folder of its own, so
# that features do not undo the usual build; a binary made elsewhere is used if ZOO_BINARY names it.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:?set OUT to a folder for the records}"
mkdir -p "$OUT"

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv | tee "$OUT/gpu.csv"

if [ -n "${ZOO_BINARY:-}" ]; then
    zoo=$ZOO_BINARY
else
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target-cuda}"
    cargo build --release --locked --features cuda --bin zoo
    zoo=$CARGO_TARGET_DIR/release/zoo
    cargo test --release --locked -p zoo-harness --features cuda --bin zoo device 2>&1 | tee "$OUT/device-tests.log"
fi

export ZOO_HOME="$OUT/home"
run() {
    local name=$1 code=0
    shift
    "$zoo" "$@" >"$OUT/$name.json" 2> >(tee "$OUT/$name.log" >&2) || code=$?
    echo "$name ended with $code" | tee -a "$OUT/codes.txt"
    # Verdicts of any kind are results; anything else is a fault.
    case $code in 0 | 10 | 11 | 12) ;; *) return 1 ;; esac
}
run smoke reproduce reversal-transformer --tier smoke --device cuda:0 --format json
run reversal reproduce reversal-transformer --device cuda:0 --yes --format json
"$zoo" ledger verify
"$zoo" ledger recheck
cp "$ZOO_HOME/ledger.jsonl" "$OUT/ledger.jsonl"
