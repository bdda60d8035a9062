#!/usr/bin/env bash
# Checks and measurements that need an NVIDIA GPU, in the order of their value. A stage is a list of
# steps. A step that ended is not begun again. A training that was cut off goes on, another step
# begins anew with the kernels that were compiled. Steps that failed or were too long for a call come
# last. Exit codes: 0 all steps ended, 75 call again, 1 all were tried and some failed.
#
#   OUT=folder ci/gpu.sh [--dry] [STAGE…]
#   ci/gpu.sh --list                        the stages, in their order
#
# Needs a CUDA driver, NVRTC and the toolkit's headers (CUDA_PATH, or /usr/local/cuda). ZOO_BINARY
# names a program that was built elsewhere with `--features cuda`, ZOO_UNFUSED one with `--features
# cuda-unfused`, packed with xz or not; else they are built here, in a target folder of their own so
# that features do not undo the usual build. PYTHON (python3) is an interpreter with PyTorch, for the
# stage pytorch; without one, zoo alone is timed, or with ZOO_CUDA_CHECK_ALL=yes the stage fails.
# Products of FP32 are FP32 (`--fp32 strict`) except where TF32 is in the name.
# Compiled kernels are kept in OUT/home/kernels; on a card for minutes, CUBECL_AUTOTUNE_LEVEL=minimal
# compiles fewer. KERNELS names an archive of kernels that ci/cuda_standin/pack.py made beforehand.
# Without a network, ZOO_MIRROR names the folder of corpora. SECONDS_PER_CALL (540) bounds one call.
# JOBS (2) is the number of runs side by side. ZOO_DEVICE (cuda:0) names another device. The home in
# OUT begins with a copy of RECORDS (results/data): its ledger and hypotheses. ci/gpu-record.sh OUT
# NAME takes the new records over.
#
# --dry tries the script without a GPU, in OUT/dry: kernels are compiled by NVRTC and executed on the
# stand-in driver of ci/cuda_standin, with the smallest shapes and recipes. Without ZOO_UNFUSED, the
# stage unfused is tried with the same program. The doctor and parity in TF32 compile kernels and
# execute none: the stand-in does not execute those that load by TMA. Speeds in TF32 are not tried.
# ZOO_CUDA_CACHE is as in ci/cuda-check.sh.
set -euo pipefail
shopt -s inherit_errexit
cd "$(dirname "$0")/.."

stages=(doctor kernels parity pytorch multi30k halves unfused profiles tf32 others smoke toys)
dry=
chosen=()
for argument in "$@"; do
    case $argument in
        --dry) dry=yes ;;
        --list)
            printf '%s\n' "${stages[@]}"
            exit 0
            ;;
        *)
            if [[ " ${stages[*]} " != *" $argument "* ]]; then
                echo "error: there is no stage $argument; the stages are ${stages[*]}" >&2
                exit 2
            fi
            chosen+=("$argument")
            ;;
    esac
done
: "${OUT:?set OUT to a folder for the records}"
OUT=$OUT${dry:+/dry}
mkdir -p "$OUT"/{done,last,long}
OUT=$(cd "$OUT" && pwd)
end=$((SECONDS + ${SECONDS_PER_CALL:-540}))
device=${ZOO_DEVICE:-cuda:0}
feature=cuda
if [ "$device" = wgpu ]; then feature=wgpu; fi

# What each stage is tried on: small things in a dry run.
if [ -n "$dry" ]; then
    rows=(dropout layer_norm)
    families=(yesno-tdnn)
    others=(reversal-transformer)
    timed=(reversal-transformer)
    modes=(fp32 fp16 bf16)
    timing=(--rounds 1 --steps 1 --shape 2x3)
    trained=(reversal-transformer --tier smoke --arms fp32,mixed --seeds 2 --offline)
    toys=(reversal-rnn-rnn --tier smoke --arms fp32 --offline)
    smoked=(reversal-transformer)
else
    rows=()
    # With the fixtures of what is timed and trained below, and of each task.
    families=(transformer-base gnmt-v2 convs2s wave2letter-plus deepspeech2-small tacotron2 ptb-lstm-small big-lstm-1b
        imdb-cnn-keras sst-wkt2 mnist-cnn-keras multi30k-transformer-tiny)
    # A recipe for each fixture that is left.
    others=(gnmt transformer-big-nvidia vaswani-big convs2s-gehring iwslt14-lstm multi30k-lstm nmt-small
        lstm-5x1024-en-fr reversal-rnn-rnn reversal-rnn-conv reversal-conv-rnn reversal-conv-conv)
    timed=(transformer-base transformer-big gnmt-v2 convs2s wave2letter-plus deepspeech2-large tacotron2 ptb-lstm-pytorch)
    modes=(fp32 fp16 tf32 bf16)
    timing=(--rounds 2 --steps 8)
    trained=(multi30k-transformer-tiny --seeds 5 --fp32 strict)
    toys=(reversal-transformer)
    smoked=()
fi

step() { printf '\n== %s\n' "$*" >&2; }
left() { echo $((end - SECONDS)); }

# The program to call: as it was given, unpacked, or built here.
program() {
    local given=$1 features=$2 unpacked=$OUT/bin-$2/zoo
    mkdir -p "$OUT/bin-$2"
    case $given in
        "")
            export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target/gpu}"
            cargo build --release --locked --features "$features" --bin zoo >&2
            cp "$CARGO_TARGET_DIR/release/zoo" "$unpacked"
            ;;
        *.xz) xz --decompress --stdout "$given" >"$unpacked" ;;
        *) cp "$given" "$unpacked" ;;
    esac
    chmod +x "$unpacked"
    if [ -n "$dry" ]; then
        mv "$unpacked" "$unpacked.real"
        printf '#!/bin/sh\nexec %q %q %q %q "$@"\n' "$PWD/ci/cuda_standin/run.sh" "$cache" "$OUT/standin" "$unpacked.real" >"$unpacked"
        chmod +x "$unpacked"
    fi
    echo "$unpacked"
}
if [ -n "$dry" ]; then
    cache=${ZOO_CUDA_CACHE:-$(realpath -m "${CARGO_TARGET_DIR:-target}")/cuda-standin}
    code=0
    ci/cuda_standin/prepare.sh "$cache" || code=$?
    if [ "$code" = 3 ]; then
        echo "note: CUDA is not checked" >&2
        exit 0
    fi
    if [ "$code" != 0 ]; then
        echo "error: the stand-in driver cannot be built: ci/cuda_standin/prepare.sh ended with $code" >&2
        exit 1
    fi
    export CUBECL_AUTOTUNE_LEVEL=minimal
elif [[ $device == cuda* ]]; then
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv | tee "$OUT/gpu.csv"
fi
zoo=$(program "${ZOO_BINARY:-}" "$feature")
export ZOO_HOME="$OUT/home"
mkdir -p "$ZOO_HOME"
for kept in ledger.jsonl hypotheses; do
    if [ ! -e "$ZOO_HOME/$kept" ] && [ -e "${RECORDS:-results/data}/$kept" ]; then
        cp -r "${RECORDS:-results/data}/$kept" "$ZOO_HOME/$kept"
    fi
done
if [ -n "${KERNELS:-}" ] && [ -z "$dry" ] && [ ! -e "$ZOO_HOME/kernels" ]; then
    mkdir -p "$OUT/kernels"
    tar -xJf "$KERNELS" -C "$OUT/kernels"
    mv "$OUT/kernels" "$ZOO_HOME/kernels"
fi
# The first step of a call has all of its time.
began=$SECONDS
last=

# Faults are printed at the end of the call, too.
faults=()
fault() {
    echo "error: $1" >&2
    faults+=("$1")
}
print_faults() { if [ ${#faults[@]} -gt 0 ]; then printf '\nerror: %s\n' "${faults[@]}" >&2; fi; }
again() {
    print_faults
    echo "no time is left in this call: call again to go on with $1"
    exit 75
}
# One step, until the call's end. `$2` are the exit codes that are results; any other is a fault.
run() {
    local name=$1 results=$2 rest code=0 started=$SECONDS compiling=()
    shift 2
    if [ -e "$OUT/done/$name" ]; then return; fi
    # Steps that failed are begun again when all others have ended.
    if [ -z "$last" ] && [ -e "$OUT/last/$name" ]; then return; fi
    # What did not end in two whole calls would keep the others from their turn for ever.
    if [ -e "$OUT/long/$name" ]; then
        fault "$name did not end in two whole calls; without $OUT/long/$name it is tried again"
        return
    fi
    rest=$(left)
    if [ "$rest" -lt 10 ]; then again "$name"; fi
    step "$name"
    if [[ -n $dry && $name == *tf32* ]]; then compiling=(env STANDIN_COMPILE_ONLY=1); fi
    # In the foreground: else the program gets the signal twice, and the second one stops it without
    # saving.
    timeout --foreground --signal INT --kill-after 60 "$rest" "${compiling[@]}" "$@" >"$OUT/$name.out" 2> >(tee -a "$OUT/$name.log" >&2) || code=$?
    echo "$name ended with $code after $((SECONDS - started)) s" | tee -a "$OUT/codes.txt"
    case $code in
        6 | 124 | 137)
            if [ "$(left)" -gt 0 ]; then
                fault "$name was killed"
                touch "$OUT/last/$name"
                return
            fi
            if [ "$started" -le $((began + 30)) ] && [[ $name != train-* ]]; then
                fault "$name needs more than $rest seconds"
                if [ -n "$last" ]; then touch "$OUT/long/$name"; fi
                touch "$OUT/last/$name"
            fi
            again "$name"
            ;;
    esac
    if [[ " $results " == *" $code "* ]]; then
        touch "$OUT/done/$name"
    else
        cat "$OUT/$name.out" >&2
        fault "$name ended with $code"
        touch "$OUT/last/$name"
    fi
}
zoo_run() {
    local name=$1 results=$2
    shift 2
    run "$name" "$results" "$zoo" "$@" --device "$device" --format json
}
has_tf32() { [[ $device == cuda* ]]; }
# Verdicts of any kind are results.
verdicts="0 9 10 11 12"

doctor() {
    zoo_run doctor 0 doctor --fp32 strict
    if has_tf32; then zoo_run doctor-tf32 0 doctor --fp32 tf32; fi
}
# Own kernels against the same in Burn's operations, values and gradients; update rules against the
# host's.
kernels() { zoo_run kernels 0 verify --kernels "${rows[@]}" --fp32 strict; }
# The fixtures: products that are FP32 hold FP32's limits.
fixtures() {
    local name=$1 recipe
    shift
    for recipe in "${families[@]}"; do zoo_run "$name-$recipe" 0 verify "$recipe" --to parity "$@"; done
}
parity() { fixtures parity --fp32 strict; }
others() {
    local recipe
    for recipe in "${others[@]}"; do zoo_run "parity-$recipe" 0 verify "$recipe" --to parity --fp32 strict; done
}
# Updates a second and memory, beside PyTorch eager with AMP and SDPA, turn by turn.
pytorch() {
    local recipe mode name arm
    if [[ $device != cuda* ]]; then return; fi
    if ! "${PYTHON:-python3}" -c 'import torch' 2>/dev/null; then
        if [ "${ZOO_CUDA_CHECK_ALL:-}" = yes ]; then
            fault "${PYTHON:-python3} has no PyTorch"
            return
        fi
        echo "note: ${PYTHON:-python3} has no PyTorch; zoo alone is timed" | tee -a "$OUT/codes.txt" >&2
        for mode in "${modes[@]}"; do
            # The arms of tests/reference/bench_vs_pytorch.py.
            case $mode in
                fp16) arm=(--arms mixed --fp32 strict) ;;
                bf16) arm=(--arms fp32 --set precision.compute=bf16 --fp32 strict) ;;
                tf32) arm=(--arms fp32 --fp32 tf32) ;;
                *) arm=(--arms fp32 --fp32 strict) ;;
            esac
            for recipe in "${timed[@]}"; do
                zoo_run "bench-$recipe-$mode" 0 bench "$recipe" "${arm[@]}" --steps 4 --offline ${dry:+--tier smoke}
            done
        done
        return
    fi
    for mode in "${modes[@]}"; do
        for recipe in "${timed[@]}"; do
            name=pytorch-$recipe-$mode
            if [ ! -e "$OUT/done/$name" ]; then rm -f "$OUT/$name.json"; fi
            run "$name" 0 "${PYTHON:-python3}" tests/reference/bench_vs_pytorch.py --bin "$(dirname "$zoo")" \
                --device "$device" ${dry:+--pytorch-device cpu} --modes "$mode" "${timing[@]}" --out "$OUT/$name.json" "$recipe"
        done
    done
}
multi30k() { zoo_run train-multi30k "$verdicts" reproduce "${trained[@]}" --jobs "${JOBS:-2}" --yes; }
# A type that the device lacks is not a fault. The argument comes behind the names of the steps.
halves() {
    local compute machine after=${1:-}
    machine=$(timeout 120 "$zoo" doctor --device "$device" 2>&1) || true
    for compute in fp16 bf16; do
        if [[ $machine == *"no $compute"* ]]; then
            echo "$device has no $compute" | tee -a "$OUT/codes.txt"
            continue
        fi
        zoo_run "kernels$after-$compute" 0 verify --kernels "${rows[@]}" --compute "$compute"
        fixtures "parity$after-$compute" --compute "$compute"
    done
}
# With the program whose operations are not fused: a fault of ours differs from one of fusion's.
unfused() {
    local fused=$zoo given=${ZOO_UNFUSED:-}
    if [ -n "$dry" ]; then given=${given:-${ZOO_BINARY:-}}; fi
    zoo=$(program "$given" "$feature-unfused")
    zoo_run kernels-unfused 0 verify --kernels "${rows[@]}" --fp32 strict
    fixtures parity-unfused --fp32 strict
    halves -unfused
    zoo=$fused
}
# Where the time of an update goes, by kernel.
profiles() {
    local recipe
    for recipe in "${timed[@]}"; do
        zoo_run "profile-$recipe" 0 bench "$recipe" --arms fp32,mixed --kernels --offline --fp32 strict ${dry:+--tier smoke}
    done
}
# Breaks at the encoder: the record says how far off TF32 is.
tf32() { if has_tf32; then zoo_run parity-tf32 "0 9" verify "${families[0]}" --to parity --fp32 tf32; fi; }
smoke() {
    local recipe
    if [ ${#smoked[@]} = 0 ]; then
        "$zoo" list --format csv >"$OUT/recipes.csv"
        mapfile -t smoked < <(tail -n +2 "$OUT/recipes.csv" | cut -d, -f1)
    fi
    # All arms in one call, those that stand for TF32 too: they are recorded as what they were.
    for recipe in "${smoked[@]}"; do
        zoo_run "smoke-$recipe" "$verdicts" reproduce "$recipe" --tier smoke --offline --fp32 strict ${dry:+--arms fp32}
    done
}
toys() {
    zoo_run train-reversal "$verdicts" reproduce "${toys[@]}" --yes
    if [ -z "$dry" ]; then zoo_run train-yesno "$verdicts" reproduce yesno-tdnn --yes --fp32 strict; fi
}

for last in "" last; do
    for stage in "${chosen[@]:-${stages[@]}}"; do "$stage"; done
    # Nothing is tried twice in a call.
    if [ ${#faults[@]} -gt 0 ]; then break; fi
done

"$zoo" ledger verify
print_faults
if [ ${#faults[@]} -gt 0 ]; then exit 1; fi
echo "all stages ended: ${chosen[*]:-${stages[*]}}"
