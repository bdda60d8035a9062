#!/usr/bin/env bash
# What needs an NVIDIA GPU, in stages of at most ten minutes. A stage that ended is not begun again, one that was cut off goes on:
# call it until it says that all stages ended.
#
#   OUT=folder ci/gpu.sh [STAGE…]      stages: doctor parity bench smoke reversal multi30k
#
# Needs a CUDA driver, NVRTC and the toolkit's headers (CUDA_PATH, or /usr/local/cuda). ZOO_BINARY names a program that was built
# elsewhere with `--features cuda`, packed with xz or not; else it is built here, in a target folder of its own so that features do not
# undo the usual build. ZOO_MIRROR names the corpora where there is no network; SECONDS_PER_CALL (540) bounds one call; ZOO_DEVICE
# (cuda:0) names another device, so that the script itself can be tried without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
: "${OUT:?set OUT to a folder for the records}"
mkdir -p "$OUT/done"
budget=${SECONDS_PER_CALL:-540}
end=$((SECONDS + budget))

device=${ZOO_DEVICE:-cuda:0}
case $device in
    wgpu) feature=wgpu ;;
    *) feature=cuda ;;
esac

case $device in
    cuda*) nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv | tee "$OUT/gpu.csv" ;;
esac

case ${ZOO_BINARY:-} in
    "")
        export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target/gpu}"
        cargo build --release --locked --features "$feature" --bin zoo
        zoo=$CARGO_TARGET_DIR/release/zoo
        ;;
    *.xz)
        zoo=$(mktemp)
        xz --decompress --stdout "$ZOO_BINARY" >"$zoo"
        chmod +x "$zoo"
        ;;
    *) zoo=$ZOO_BINARY ;;
esac
export ZOO_HOME="$OUT/home"

# Runs zoo until the call's end. Verdicts of any kind are results, and so is a difference that was found; anything else is a fault.
run() {
    local name=$1 left=$((end - SECONDS)) code=0
    shift
    if [ "$left" -lt 10 ]; then
        echo "no time is left in this call: call again to go on with $name"
        exit 0
    fi
    timeout --signal INT "$left" "$zoo" "$@" --device "$device" --format json >"$OUT/$name.json" 2> >(tee -a "$OUT/$name.log" >&2) || code=$?
    echo "$name ended with $code" | tee -a "$OUT/codes.txt"
    case $code in
        0 | 9 | 10 | 11 | 12) ;;
        6 | 124)
            # Nothing of these is kept: one that does not end within a whole call never will.
            if [[ $name == bench-* || $name == parity ]] && [ "$left" -gt $((budget - 30)) ]; then
                echo "error: $name needs more than $left seconds" >&2
                return 1
            fi
            echo "$name is saved: call again to go on with it"
            exit 0
            ;;
        *)
            cat "$OUT/$name.json" >&2
            return 1
            ;;
    esac
}

doctor() { run doctor doctor; }
# Breaks at the encoder where the device makes TF32 of FP32 products: the record says how far off it is.
parity() { run parity verify --to parity; }
# Updates a second at full size, on generated batches of the published shape where the text is not there.
bench() {
    local recipe
    for recipe in multi30k-transformer-tiny transformer-base transformer-big; do
        if [ -e "$OUT/done/bench-$recipe" ]; then continue; fi
        run "bench-$recipe" bench "$recipe" --arms fp32,mixed --offline
        touch "$OUT/done/bench-$recipe"
    done
}
smoke() {
    local recipe
    for recipe in $("$zoo" list --format csv | tail -n +2 | cut -d, -f1); do
        run "smoke-$recipe" reproduce "$recipe" --tier smoke --offline
    done
}
reversal() { run reversal reproduce reversal-transformer --yes; }
multi30k() { run multi30k reproduce multi30k-transformer-tiny --yes; }

for stage in "${@:-doctor parity bench smoke reversal multi30k}"; do
    # The default is one word of several stages.
    for stage in $stage; do
        if [ -e "$OUT/done/$stage" ]; then continue; fi
        printf '\n== %s\n' "$stage" >&2
        "$stage"
        touch "$OUT/done/$stage"
    done
done
if [ -f "$ZOO_HOME/ledger.jsonl" ]; then
    "$zoo" ledger verify
    "$zoo" ledger recheck
    cp -r "$ZOO_HOME/ledger.jsonl" "$ZOO_HOME/hypotheses" "$OUT/"
fi
echo "all stages ended"
