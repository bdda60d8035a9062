#!/usr/bin/env bash
# Packs the models that this project has trained, and checks each package.
#
#   ci/release.sh target/release/zoo OUT            # of the runs in ZOO_HOME
#   ci/release.sh target/release/zoo OUT --most 100 # packages of at most 100 MB (default)
#
# For every recipe of the project's ledger, the first seed of each arm that ended at the published size
# becomes OUT/NAME.tar. A run without a record in the ledger is left out: its card could not say what
# was reproduced.
set -euo pipefail
cd "$(dirname "$0")/.."

zoo=$(realpath "${1:?zoo}") out=${2:?folder} most=100
[ "${3:-}" != --most ] || most=${4:?megabytes}
ledger=results/data/ledger.jsonl
mkdir -p "$out"

"$zoo" runs --tier full --state evaluated --format csv | python3 -c '
import csv, sys

first = {}
for row in csv.DictReader(sys.stdin):
    key = row["recipe"], row["arm"]
    if key not in first or int(row["seed"]) < int(first[key]["seed"]):
        first[key] = row
for key in sorted(first):
    print(first[key]["folder"], "{}-{}-seed{}".format(*key, first[key]["seed"]))
' | while read -r run name; do
    package="$out/$name.tar"
    rm -f "$package"
    made=$("$zoo" pack "$run" -o "$package" --ledger "$ledger" --format csv 2>"$out/$name.log" | tail -1) || {
        echo "$name: not packed: $(grep -m1 '^error' "$out/$name.log")"
        continue
    }
    bytes=$(cut -d, -f3 <<<"$made") record=$(cut -d, -f4 <<<"$made" | tr -d '\r')
    if [ -z "$record" ] || [ "$bytes" -gt $((most * 1000000)) ]; then
        rm "$package" "$out/$name.log"
        echo "$name: left out: $([ -n "$record" ] && echo "$bytes bytes" || echo no record)"
        continue
    fi
    "$zoo" pack --check "$package"
    rm "$out/$name.log"
done
(cd "$out" && sha256sum -- *.tar >SHA256SUMS)
