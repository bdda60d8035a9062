#!/usr/bin/env bash
# Copies the records of ci/gpu.sh into results/data: ledger and outputs, the machine, and the results
# of kernels, fixtures, speeds and profiles of steps that ended. They become tables of
# docs/devices.md. May be called again after more calls of ci/gpu.sh.
#
#   ci/gpu-record.sh OUT NAME        e.g. ci/gpu-record.sh records nvidia-h100-2026-12
#
# ZOO (target/debug/zoo) is a program that was built from this tree.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."
out=$(cd "${1:?ci/gpu-record.sh OUT NAME}" && pwd)
name=${2:?ci/gpu-record.sh OUT NAME}
zoo=${ZOO:-target/debug/zoo}
ledger=results/data/ledger.jsonl

if [ -e "$out/home/ledger.jsonl" ]; then
    merged=$("$zoo" ledger merge "$out/home/ledger.jsonl" --ledger "$ledger" --format json)
    echo "$merged"
    python3 -c 'import json, sys; print(json.loads(sys.argv[1])["head"])' "$merged" >results/data/ledger.head
    for file in RESULTS.md README.md; do "$zoo" report --ledger "$ledger" --into "$file"; done
fi

folder=results/data/devices/$name
mkdir -p "$folder"
for step in "$out"/done/{doctor,kernels,parity,bench,profile}*; do
    if [ -e "$step" ]; then sed "s#$out#OUT#g" "$out/$(basename "$step").out" >"$folder/$(basename "$step").json"; fi
done
for file in gpu.csv codes.txt; do if [ -e "$out/$file" ]; then cp "$out/$file" "$folder/"; fi; done
if ! grep -q "<!-- device: $name -->" docs/devices.md; then
    printf '\n### Checks of %s\n\n<!-- device: %s -->\n<!-- end of device -->\n' "$name" "$name" >>docs/devices.md
fi
python3 ci/device_tables.py docs/devices.md

speeds=()
for step in "$out"/done/pytorch-*; do
    if [ -e "$step" ]; then speeds+=("$out/$(basename "$step").json"); fi
done
if [ ${#speeds[@]} -gt 0 ]; then
    python3 ci/bench_tables.py --collect "results/data/bench/$name.json" "${speeds[@]}"
    if ! grep -q "<!-- bench: $name.json -->" docs/devices.md; then
        printf '\n### Speeds of %s beside PyTorch\n\n<!-- bench: %s.json -->\n<!-- end of bench -->\n' "$name" "$name" >>docs/devices.md
    fi
    python3 ci/bench_tables.py docs/devices.md
fi
