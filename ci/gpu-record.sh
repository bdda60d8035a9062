#!/usr/bin/env bash
# Takes what ci/gpu.sh wrote into results/data: ledger and outputs, the doctor, kernels and fixtures
# as they were printed, and the speeds beside PyTorch, whose table in docs/devices.md is made again.
#
#   ci/gpu-record.sh OUT NAME        e.g. ci/gpu-record.sh records nvidia-h100-2026-12
#
# ZOO (target/debug/zoo) is a program that was built from this tree.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:?ci/gpu-record.sh OUT NAME}
name=${2:?ci/gpu-record.sh OUT NAME}
zoo=${ZOO:-target/debug/zoo}
ledger=results/data/ledger.jsonl

if [ -e "$out/home/ledger.jsonl" ]; then
    "$zoo" ledger merge "$out/home/ledger.jsonl" --ledger "$ledger" --format json | tee /dev/stderr |
        python3 -c 'import json, sys; print(json.load(sys.stdin)["head"])' >"$ledger.head"
    mv "$ledger.head" results/data/ledger.head
    for file in RESULTS.md README.md; do "$zoo" report --ledger "$ledger" --into "$file"; done
fi
folder=results/data/devices/$name
mkdir -p "$folder"
for step in "$out"/doctor*.out "$out"/kernels*.out "$out"/parity*.out; do
    if [ -e "$step" ]; then sed "s#$(cd "$out" && pwd)#OUT#g" "$step" >"$folder/$(basename "$step" .out).json"; fi
done
for file in gpu.csv codes.txt; do if [ -e "$out/$file" ]; then cp "$out/$file" "$folder/"; fi; done
if compgen -G "$out/pytorch-*.json" >/dev/null; then
    python3 ci/bench_tables.py --collect "results/data/bench/$name.json" "$out"/pytorch-*.json
    python3 ci/bench_tables.py docs/devices.md
fi
