#!/usr/bin/env bash
# What can be said of the GPU builds without a GPU: they compile, they do not panic without a
# driver, CUDA's own kernels agree with Burn's operations on a stand-in driver (ci/cuda-check.sh),
# and on Vulkan (Mesa's software driver will do) wgpu's own kernels do and compute the reference
# fixtures, with operations fused and unfused. Kernels are kept in the home, and used again.
#
#   ci/gpu-check.sh
#
# Root on Debian without a Vulkan driver gets Mesa's installed; ZOO_INSTALL=no leaves the machine as
# it is. Processors are slow GPUs: a step is ended, and none is begun, when ZOO_GPU_CHECK_SECONDS
# (9000) have passed; what was left out is said. The order is that of what a fault costs: the build
# and CUDA's quick stage come first.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export ZOO_HOME="$scratch/home" XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}"
zoo=$(realpath -m "${CARGO_TARGET_DIR:-target}")/gpu-check/zoo

began=$(date +%s)
step() { printf '\n== %s\n' "$*" >&2; }
over() {
    echo "note: the time is over; not looked at: $*, and what follows" >&2
    exit 0
}
left() { echo $((began + ${ZOO_GPU_CHECK_SECONDS:-9000} - $(date +%s))); }
# A step on Vulkan, with its name first.
on_vulkan() {
    local name=$1 seconds code=0
    shift
    seconds=$(left)
    if [ "$seconds" -le 0 ]; then over "$name"; fi
    step "$name"
    timeout --signal INT --kill-after 20 "$seconds" "$@" || code=$?
    case $code in
        124 | 137) over "all of $name" ;;
        *) return "$code" ;;
    esac
}
# Own kernels against the same in Burn's operations. What multiplies is tuned for each shape first,
# which a processor takes minutes for.
kernels() {
    local name=$1
    shift
    on_vulkan "kernels $name" "$zoo" verify --kernels nothing dropout relu_dropout add_dropped layer_norm cross_entropy embedding \
        batch_norm gradient adam lazy sgd novograd --device wgpu "$@"
    on_vulkan "kernels of recurrent layers $name" "$zoo" verify --kernels lstm gru --device wgpu "$@"
    on_vulkan "kernels of attention $name" "$zoo" verify --kernels attention --device wgpu "$@"
}
drivers() { compgen -G '/usr/share/vulkan/icd.d/*.json' >/dev/null || compgen -G '/etc/vulkan/icd.d/*.json' >/dev/null; }
build() { cargo build --profile gpu-check --locked -p zoo-harness --bin zoo --features "$1"; }
# Ends with this code, and not by a panic.
ends_with() {
    local expected=$1 code=0
    shift
    "$@" >"$scratch/out" 2>&1 || code=$?
    if [ "$code" != "$expected" ] || grep -q "panicked" "$scratch/out"; then
        cat "$scratch/out" >&2
        echo "error: $* ended with $code, not $expected" >&2
        exit 1
    fi
}

lints() {
    step "lints of what only these builds compile"
    # In the usual profile: what these builds have in common with the default one was looked at before.
    cargo clippy --locked -p zoo-harness --bin zoo --features cuda,wgpu -- -D warnings
}

# The build takes minutes. The lints alone show that everything compiles.
if [ "$(left)" -le 600 ]; then
    lints
    over "CUDA and wgpu, fused"
fi
step "CUDA and wgpu, fused"
build cuda,wgpu
"$zoo" doctor
if [ ! -e /proc/driver/nvidia/version ]; then
    ends_with 8 "$zoo" doctor --device cuda:0
    ends_with 8 "$zoo" reproduce reversal-transformer --tier smoke --offline --device cuda:0
fi

# Ends by itself when its time is over.
on_standin() {
    local stage=$1 most=$2 seconds
    seconds=$(left)
    if [ "$seconds" -le 0 ]; then over "CUDA on a stand-in driver, $stage stage"; fi
    ZOO_CUDA_CHECK_SECONDS=$((seconds < most ? seconds : most)) ci/cuda-check.sh "$stage"
}
on_standin quick 360

# Most of it is compiled a second time.
if [ "$(left)" -le 240 ]; then over "lints"; fi
lints

on_standin thorough 3600

if ! drivers && [ "${ZOO_INSTALL:-yes}" = yes ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    step "Mesa's software Vulkan"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        mesa-vulkan-drivers libvulkan1; } >&2 || echo "note: Mesa could not be installed" >&2
fi
if ! drivers; then
    echo "note: there is no Vulkan driver; that the builds compile is all that was seen" >&2
    exit 0
fi
step "a device that is opened with other properties, as CUDA's is without TF32, and launches by kernel"
cargo test --profile gpu-check --locked -p zoo-ops --lib -p zoo-harness --bin zoo \
    --features zoo-harness/cuda,zoo-harness/wgpu -- device:: launches::

kernels "in FP32"

rm -rf "$ZOO_HOME/kernels"
mkdir "$scratch/elsewhere" "$scratch/user"
kept=$ZOO_HOME/kernels # with a folder for each build
# A database and what was written to it last; reading changes neither.
kept_kernels() { cat "$kept"/*/wgpu*.db "$kept"/*/wgpu*.db-wal | sha256sum; }
# Without the driver's own cache, which would make a second time quicker too.
parity() {
    on_vulkan "$1" env -C "$scratch/elsewhere" HOME="$scratch/user" XDG_CACHE_HOME="$scratch/user" MESA_SHADER_CACHE_DISABLE=true \
        "$zoo" verify reversal-transformer --to parity --device wgpu
}
SECONDS=0
parity "parity of translation; kernels are kept in the home and nowhere else"
first=$SECONDS
if [ "$(cat "$kept"/*/wgpu*.db "$kept"/*/wgpu*.db-wal | wc -c)" -lt 100000 ]; then
    echo "error: no kernels were kept in $kept" >&2
    exit 1
fi
before=$(kept_kernels)
SECONDS=0
parity "the same with the kernels of the first time"
echo "parity took $first s, and $SECONDS s with the kernels of the first time" >&2
if [ "$before" != "$(kept_kernels)" ]; then
    echo "error: the second time found out more about kernels than the first" >&2
    exit 1
fi
if [ -n "$(ls -A "$scratch/elsewhere")" ] || [ -n "$(find "$scratch/user" -ipath '*cubecl*' -o -name '*.db')" ]; then
    echo "error: kernels were kept outside of the home" >&2
    exit 1
fi
"$zoo" doctor --device wgpu | grep "^ok .*kernels .* in [0-9]* files"
kernels "in fp16" --compute fp16
on_vulkan "parity of speech" "$zoo" verify yesno-tdnn --to parity --device wgpu
on_vulkan "parity of translation in fp16" "$zoo" verify reversal-transformer --to parity --device wgpu --compute fp16

if [ "$(left)" -le 0 ]; then over "unfused operations"; fi
step "wgpu, unfused"
build wgpu-unfused
kernels "in FP32, unfused"
on_vulkan "parity of translation, unfused" "$zoo" verify reversal-transformer --to parity --device wgpu
on_vulkan "parity of speech, unfused" "$zoo" verify yesno-tdnn --to parity --device wgpu
