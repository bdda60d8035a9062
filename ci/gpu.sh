#!/usr/bin/env bash
# What needs an NVIDIA GPU, in stages of at most ten minutes. A stage that ended is not begun again,
# one that was cut off goes on: call it until it says that all stages ended.
#
#   OUT=folder ci/gpu.sh [STAGE…]      stages: doctor kernels kernels-fp16 kernels-bf16 kernels-unfused
#                                      kernels-unfused-fp16 kernels-unfused-bf16 strict parity-tf32
#                                      parity-fp16 parity-bf16 parity-unfused speech bench smoke yesno
#                                      reversal multi30k
#
# Needs a CUDA driver, NVRTC and the toolkit's headers (CUDA_PATH, or /usr/local/cuda). ZOO_BINARY
# names a program that was built elsewhere with `--features cuda`, ZOO_UNFUSED one with `--features
# cuda-unfused`, packed with xz or not; else they are built here, in a target folder of their own so
# that features do not undo the usual build. Products of FP32 are FP32 (`--fp32 strict`) except
# where TF32 is in the name; the stages doctor and strict record how the device multiplies in each
# type. Kernels that were compiled once are kept in OUT/home/kernels, so that what goes on does not
# begin with them. ZOO_MIRROR names the corpora where there is no network; SECONDS_PER_CALL (540)
# bounds one call; ZOO_DEVICE (cuda:0) names another device, so that the script itself can be tried
# without a GPU.
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

# The program to call: as it was given, unpacked, or built here.
program() {
    local given=$1 features=$2 unpacked
    case $given in
        "")
            export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target/gpu}"
            cargo build --release --locked --features "$features" --bin zoo >&2
            unpacked=$OUT/zoo-$features
            cp "$CARGO_TARGET_DIR/release/zoo" "$unpacked"
            echo "$unpacked"
            ;;
        *.xz)
            unpacked=$(mktemp)
            xz --decompress --stdout "$given" >"$unpacked"
            chmod +x "$unpacked"
            echo "$unpacked"
            ;;
        *) echo "$given" ;;
    esac
}
zoo=$(program "${ZOO_BINARY:-}" "$feature")
export ZOO_HOME="$OUT/home"

# Runs zoo until the call's end. Verdicts of any kind are results, and so is a difference that was
# found; anything else is a fault.
run() {
    local name=$1 left=$((end - SECONDS)) code=0
    shift
    if [ "$left" -lt 10 ]; then
        echo "no time is left in this call: call again to go on with $name"
        exit 0
    fi
    # In the foreground: else the program gets the signal twice, and the second one stops it without
    # saving.
    timeout --foreground --signal INT "$left" "$zoo" "$@" --device "$device" --format json >"$OUT/$name.json" 2> >(tee -a "$OUT/$name.log" >&2) || code=$?
    echo "$name ended with $code" | tee -a "$OUT/codes.txt"
    ended=$code
    case $code in
        0 | 9 | 10 | 11 | 12) ;;
        6 | 124)
            # Nothing of these is kept: one that does not end within a whole call never will.
            if [[ $name =~ ^(bench-|parity|kernels|strict-|speech) ]] && [ "$left" -gt $((budget - 30)) ]; then
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

# What has just run must have found no difference. What did is told again at the end, and its stage
# is begun again by the next call.
faults=()
holds() {
    if [ "$ended" != 0 ]; then
        cat "$OUT/$1.json" >&2
        faults+=("$1")
    fi
}

# Is there TF32 to be had? Only CUDA's devices have it.
has_tf32() { [[ $device == cuda* ]]; }
doctor() { if has_tf32; then run doctor doctor --fp32 tf32; else run doctor doctor; fi; }
# With the program whose operations are not fused: tells a fault of ours from one of fusion's.
unfused() {
    local fused=$zoo
    zoo=$(program "${ZOO_UNFUSED:-}" "$feature-unfused")
    "$@"
    zoo=$fused
}
# Own kernels against the same in Burn's operations, values and gradients; update rules against the
# host's.
kernels-in-fp32() {
    run "$1" verify --kernels --fp32 strict
    holds "$1"
}
kernels() { kernels-in-fp32 kernels; }
kernels-unfused() { unfused kernels-in-fp32 kernels-unfused; }
# Products that are FP32 hold FP32's limits to the last rung; anything else is a fault.
strict() {
    run strict-doctor doctor --fp32 strict
    parity-in-fp32 strict-parity
}
parity-in-fp32() {
    run "$1" verify --to parity --fp32 strict
    holds "$1"
}
# Breaks at the encoder: the record says how far off TF32 is.
parity-tf32() {
    if has_tf32; then
        run parity-tf32 verify --to parity --fp32 tf32
    else
        echo "$device has no TF32" | tee -a "$OUT/codes.txt"
    fi
}
# The same in halves, within limits of their own; a type that the device lacks is not a
# fault.
in-halves() {
    local compute=$1 name=$2
    shift 2
    if "$zoo" doctor --device "$device" 2>&1 | grep -q "no $compute"; then
        echo "$device has no $compute" | tee -a "$OUT/codes.txt"
    else
        run "$name-$compute" verify "$@" --compute "$compute"
        holds "$name-$compute"
    fi
}
kernels-fp16() { in-halves fp16 kernels --kernels; }
kernels-bf16() { in-halves bf16 kernels --kernels; }
kernels-unfused-fp16() { unfused in-halves fp16 kernels-unfused --kernels; }
kernels-unfused-bf16() { unfused in-halves bf16 kernels-unfused --kernels; }
parity-fp16() { in-halves fp16 parity --to parity; }
parity-bf16() { in-halves bf16 parity --to parity; }
parity-unfused() { unfused parity-in-fp32 parity-unfused; }
# The speech recipes' fixtures by themselves: convolutions, recurrent layers, batch norms and CTC.
speech() {
    local names
    mapfile -t names < <("$zoo" list --task speech-recognition --format csv | tail -n +2 | cut -d, -f1)
    run speech verify "${names[@]}" --to parity --fp32 strict
    holds speech
}
# Updates a second at full size, on generated batches of the published shape where the text is not
# there.
bench() {
    local recipe
    for recipe in multi30k-transformer-tiny transformer-base transformer-big; do
        if [ -e "$OUT/done/bench-$recipe" ]; then continue; fi
        run "bench-$recipe" bench "$recipe" --arms fp32,mixed --offline
        touch "$OUT/done/bench-$recipe"
    done
    # What FP32 costs beside TF32.
    if has_tf32; then run bench-tf32 bench transformer-big --arms fp32,mixed --fp32 tf32 --offline; fi
}
smoke() {
    local recipe
    for recipe in $("$zoo" list --format csv | tail -n +2 | cut -d, -f1); do
        # All arms in one call, those that stand for TF32 too: they are recorded as what they were.
        run "smoke-$recipe" reproduce "$recipe" --tier smoke --offline --fp32 strict
    done
}
yesno() { run yesno reproduce yesno-tdnn --yes --fp32 strict; }
reversal() { run reversal reproduce reversal-transformer --yes; }
multi30k() { run multi30k reproduce multi30k-transformer-tiny --yes; }

all="doctor kernels kernels-fp16 kernels-bf16 kernels-unfused kernels-unfused-fp16 kernels-unfused-bf16 strict parity-tf32 parity-fp16 parity-bf16 parity-unfused speech bench smoke yesno reversal multi30k"
for stage in "${@:-$all}"; do
    # The default is one word of several stages.
    for stage in $stage; do
        if [ -e "$OUT/done/$stage" ]; then continue; fi
        printf '\n== %s\n' "$stage" >&2
        before=${#faults[@]}
        "$stage"
        if [ ${#faults[@]} = "$before" ]; then touch "$OUT/done/$stage"; fi
    done
done
if [ -f "$ZOO_HOME/ledger.jsonl" ]; then
    "$zoo" ledger verify
    "$zoo" ledger recheck
    cp -r "$ZOO_HOME/ledger.jsonl" "$ZOO_HOME/hypotheses" "$OUT/"
fi
if [ ${#faults[@]} != 0 ]; then
    echo "error: all stages ended, and these found differences: ${faults[*]}" >&2
    exit 1
fi
echo "all stages ended"
