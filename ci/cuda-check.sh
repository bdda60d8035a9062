#!/usr/bin/env bash
# Checks the CUDA build without a GPU: NVRTC compiles every kernel, and a stand-in driver executes
# the PTX on the processor. ci/cuda_standin/README.md says what that proves.
#
#   ci/cuda-check.sh quick       our kernels in FP32, with threads forward and reversed
#   ci/cuda-check.sh thorough    a smoke tier against the CPU's losses, parity of a recipe of each task,
#                                ci/gpu.sh --dry, our kernels in FP16 and BF16 and on padded rows,
#                                parity in FP16 and BF16
#
# Fails on an unexpected exit code, a compilation that fails, a launch that a driver would refuse, a
# fault of a kernel (a misaligned access, an access outside of memory, threads that wait at
# different barriers), and a kernel of ours that spills registers.
#
# When ZOO_CUDA_CHECK_SECONDS (quick 360, thorough 3600; the build does not count) have passed, the
# step is ended and the rest is skipped, with a note. Wheels of NVRTC are fetched with pip into
# ZOO_CUDA_CACHE (cuda-standin of the target folder) and kept there with the translated kernels.
# Where they cannot be had, or python3 or gcc is missing, nothing is checked and the exit code is 0.
# With ZOO_CUDA_CHECK_ALL=yes, both are errors, and so is an interpreter (PYTHON) without PyTorch in
# the thorough stage.
set -euo pipefail
cd "$(dirname "$0")/.."
stage=${1:-}
case $stage in
    quick) seconds=360 ;;
    thorough) seconds=3600 ;;
    *)
        echo "error: ci/cuda-check.sh quick|thorough" >&2
        exit 2
        ;;
esac
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
cache=${ZOO_CUDA_CACHE:-$target/cuda-standin}
standin=$PWD/ci/cuda_standin
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# What is tuned here, on a processor, must reach no card.
export ZOO_HOME="$scratch/home"
# Few candidates for each product: each is compiled and timed on the processor.
export CUBECL_AUTOTUNE_LEVEL=minimal
log=$scratch/log

step() { printf '\n== %s\n' "$*" >&2; }
left() { echo $((began + ${ZOO_CUDA_CHECK_SECONDS:-$seconds} - $(date +%s))); }
failed() {
    echo "error: $*" >&2
    exit 1
}
# What was to be checked cannot be.
skipped() {
    if [ "${ZOO_CUDA_CHECK_ALL:-}" = yes ]; then failed "$*"; fi
    echo "note: $*" >&2
    exit 0
}
over() { skipped "the time is over; not looked at: $*, and what follows"; }

# Runs zoo on the stand-in: the expected exit codes and a name come first. Output goes to
# $scratch/out, messages to $scratch/errors.
on_standin() {
    local codes=$1 name=$2 code=0 limit
    shift 2
    limit=$(left)
    if [ "$limit" -le 0 ]; then over "$name"; fi
    step "CUDA: $name"
    rm -rf "$log"
    timeout --signal INT --kill-after 20 "$limit" "$standin/run.sh" "$cache" "$log" \
        "$zoo" "$@" --device cuda:0 >"$scratch/out" 2>"$scratch/errors" || code=$?
    cat "$scratch/out" "$scratch/errors" >&2
    if grep -s "^FAILED" "$log/nvrtc.log" >&2; then
        cat "$log"/sources/*.log >&2
        failed "$name: NVRTC does not compile these kernels"
    fi
    if grep -sE "^(FAULT|REFUSED|UNKNOWN)" "$log/driver.log" | sort | uniq -c >&2; then
        failed "$name: a driver would refuse these launches, or these kernels are wrong"
    fi
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then over "all of $name"; fi
    if grep -q "internal error" "$scratch/errors"; then failed "$name: a panic"; fi
    [[ " $codes " == *" $code "* ]] || failed "$name ended with code $code, and not with $codes"
    echo "$name: $((limit - $(left))) s" >&2
}
# The same for a call that has to execute kernels: all of ours, and what the tuner takes of Burn's
# products. Products that load by TMA are not translated.
executed() {
    on_standin "$@"
    grep -q "^RAN" "$log/driver.log" || failed "$2: no kernel was executed"
    if grep -E "^UNSUPPORTED ($ours)_" "$log/driver.log" >&2; then failed "$2: these kernels were not executed"; fi
}
# Fails if a row of the last `verify --kernels` does not have this number of launches.
launches() {
    local row=$1 expected=$2 found
    found=$(grep -E "^$row +yes " "$scratch/out" | awk '{ print $(NF - 1) }')
    [ "$found" = "$expected" ] || failed "$row has ${found:-no} launches, and not $expected"
}
# Fails if ptxas finds too few registers for a kernel of ours that the last call loaded.
spills() {
    local ptx kernel card report count=0 spilled=0
    for ptx in "$log"/ptx/*.ptx; do
        kernel=$(grep -m 1 -oE "\.entry ($ours)_\w+" "$ptx" | cut -d' ' -f2) || continue
        card=$(grep -m 1 -oE 'sm_\w+' "$ptx")
        report=$("$cache/root/bin/ptxas" -v -arch "$card" -o /dev/null "$ptx" 2>&1) ||
            failed "ptxas does not take $kernel: $report"
        count=$((count + 1))
        if ! grep -q " 0 bytes spill stores, 0 bytes spill loads" <<<"$report"; then
            printf '%s\n%s\n' "$kernel" "$report" >&2
            spilled=$((spilled + 1))
        fi
    done
    [ "$count" -gt 0 ] || failed "none of our kernels was compiled"
    [ "$spilled" = 0 ] || failed "$spilled of $count own kernels spill registers"
    echo "none of $count own kernels spills registers" >&2
}

step "CUDA: NVRTC and the stand-in driver"
code=0
"$standin/prepare.sh" "$cache" || code=$?
if [ "$code" = 3 ]; then skipped "CUDA is not checked"; fi
[ "$code" = 0 ] || failed "the stand-in driver cannot be built"

zoo=$target/gpu-check/zoo
cargo build --profile gpu-check --locked -p zoo-harness --bin zoo --features cuda,wgpu
# Neither the build nor the download counts.
began=$(date +%s)
# Names of our kernels, as alternatives of a regular expression.
ours=$(grep -rhoE 'fn \w+_kernel\b' zoo/ops/src/cube | cut -d' ' -f2 | sort -u | paste -sd'|')

quick() {
    STANDIN_DRIVER=12040 on_standin 8 "a driver that is older than NVRTC" doctor
    grep -q "supports CUDA 12.4 and refuses kernels that NVRTC 12.9" "$scratch/out" ||
        failed "zoo doctor does not say that the driver is too old"

    executed 0 "own kernels in FP32" verify --kernels
    # As many as on Vulkan: nothing is copied to remove the padding of rows.
    launches "layer_norm, width 29" 10
    launches "attention, across" 26
    launches "lstm" 30
    compgen -G "$ZOO_HOME/kernels/*/cuda-NVIDIA_H100*-strict.db" >/dev/null ||
        failed "kernels are not kept under the name of the card: $(ls "$ZOO_HOME"/kernels/*)"
    spills
    STANDIN_REVERSE=1 executed 0 "own kernels in FP32, threads reversed" verify --kernels
}

# The losses in the logs of a home's runs, one a line.
losses() {
    python3 - "$1" <<'PYTHON'
import json, pathlib, sys
for log in sorted(pathlib.Path(sys.argv[1], "runs").rglob("log.jsonl")):
    for event in map(json.loads, log.open()):
        for name in ("loss", "train_loss", "valid_loss"):
            if event.get(name) is not None:
                print(f"update-{event['update']}-{name} {event[name]:.5f}")
PYTHON
}
thorough() {
    # Codes of verdicts: a smoke tier is not comparable with what was published.
    local smoke=(reproduce reversal-transformer --tier smoke --arms fp32 --offline) code=0
    "$zoo" "${smoke[@]}" --device cpu --home "$scratch/cpu" >&2 || code=$?
    [[ " 0 9 10 11 12 " == *" $code "* ]] || failed "the smoke tier on the CPU ended with code $code"
    executed "0 9 10 11 12" "a smoke tier against the CPU's losses" "${smoke[@]}"
    losses "$scratch/cpu" >"$scratch/losses-cpu"
    losses "$ZOO_HOME" >"$scratch/losses-cuda"
    # Sums are rounded in another order on each device.
    paste -d ' ' "$scratch/losses-cpu" "$scratch/losses-cuda" | awk '
        { print $1 ": on the CPU " $2 ", on CUDA " $4; rows++ }
        $1 != $3 || ($2 - $4) ^ 2 > 1e-6 { bad = 1 }
        END { exit bad || !rows }' >&2 || failed "losses of the smoke tier are not those of the CPU"

    # One of each task.
    local recipe recipes=(tacotron2 reversal-transformer yesno-tdnn ptb-lstm-small imdb-cnn-keras mnist-cnn-keras)
    for recipe in "${recipes[@]}"; do executed 0 "parity of $recipe" verify "$recipe" --to parity; done

    if [ "$(left)" -le 0 ]; then over "ci/gpu.sh without a GPU"; fi
    step "CUDA: ci/gpu.sh without a GPU"
    code=0
    OUT=$scratch/gpu ZOO_BINARY=$zoo ZOO_CUDA_CACHE=$cache SECONDS_PER_CALL=$(left) ci/gpu.sh --dry || code=$?
    if [ "$code" = 75 ]; then over "all of ci/gpu.sh"; fi
    [ "$code" = 0 ] || failed "ci/gpu.sh --dry ended with code $code"
    local dry=$scratch/gpu/dry
    if grep -s "^FAILED" "$dry/standin/nvrtc.log" >&2 || grep -sE "^(FAULT|REFUSED|UNKNOWN)" "$dry/standin/driver.log" >&2; then
        failed "ci/gpu.sh --dry: faults of kernels"
    fi
    # Twice, as after two calls on a card.
    local copy=$scratch/records
    mkdir -p "$copy"
    cp -r ci docs results README.md RESULTS.md "$copy"
    for _ in 1 2; do ZOO=$zoo "$copy/ci/gpu-record.sh" "$dry" dry >&2 || failed "ci/gpu-record.sh"; done
    grep -q "^| \`kernels\` |" "$copy/docs/devices.md" || failed "ci/gpu-record.sh: no table of kernels"
    if [ "${ZOO_CUDA_CHECK_ALL:-}" = yes ]; then
        grep -q "^| reversal-transformer | [0-9x]* | fp16 |" <(sed -n '/<!-- bench: dry.json -->/,$p' "$copy/docs/devices.md") ||
            failed "ci/gpu-record.sh: no table of speeds beside PyTorch"
    fi

    local compute
    for compute in fp16 bf16; do
        executed 0 "own kernels in $compute" verify --kernels --compute "$compute"
        spills
    done
    # Rows have padding with TF32 only. What multiplies loads by TMA, and is not executed.
    executed 0 "own kernels on padded rows" verify --kernels dropout relu_dropout add_dropped layer_norm cross_entropy \
        embedding batch_norm gradient --fp32 tf32
    # Three copies remove the padding, so these rows have it.
    launches "layer_norm, width 29" 13

    for recipe in "${recipes[@]}"; do
        for compute in fp16 bf16; do
            executed 0 "parity of $recipe in $compute" verify "$recipe" --to parity --compute "$compute"
        done
    done
}

$stage
