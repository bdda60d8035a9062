#!/usr/bin/env bash
# What can be said of the GPU builds without a GPU: they compile, they do not panic without a driver, and on Vulkan (Mesa's software
# driver will do) wgpu's own kernels agree with Burn's operations and compute the reference fixtures, with operations fused and unfused.
# Kernels are kept in the home, and used again.
#
#   ci/gpu-check.sh
#
# Root on Debian without a Vulkan driver gets Mesa's installed; ZOO_INSTALL=no leaves the machine as it is. Software Vulkan is slow: no
# step on it is begun when ZOO_GPU_CHECK_SECONDS (1200) have passed; what was left out is said.
set -euo pipefail
cd "$(dirname "$0")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export ZOO_HOME="$scratch/home" XDG_RUNTIME_DIR="${XDG_RUNTIME_DIR:-/tmp}"
zoo=$(realpath -m "${CARGO_TARGET_DIR:-target}")/gpu-check/zoo

began=$(date +%s)
in_time() {
    if [ $(($(date +%s) - began)) -gt "${ZOO_GPU_CHECK_SECONDS:-1200}" ]; then
        echo "note: the time is over; not looked at: $*" >&2
        exit 0
    fi
}
step() { printf '\n== %s\n' "$*" >&2; }
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

step "CUDA and wgpu, fused"
build cuda,wgpu
"$zoo" doctor
if [ ! -e /proc/driver/nvidia/version ]; then
    ends_with 8 "$zoo" doctor --device cuda:0
    ends_with 8 "$zoo" reproduce reversal-transformer --tier smoke --offline --device cuda:0
fi

step "lints of what only these builds compile"
cargo clippy --profile gpu-check --locked -p zoo-harness --bin zoo --features cuda,wgpu -- -D warnings

if ! drivers && [ "${ZOO_INSTALL:-yes}" = yes ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    step "Mesa's software Vulkan"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends \
        mesa-vulkan-drivers libvulkan1; } >&2 || echo "note: Mesa could not be installed" >&2
fi
if ! drivers; then
    echo "note: there is no Vulkan driver; that the builds compile is all that was seen" >&2
    exit 0
fi
step "a device that is opened with other properties, as CUDA's is without TF32"
cargo test --profile gpu-check --locked -p zoo-harness --bin zoo --features cuda,wgpu device::

in_time "own kernels, and all that follows"
step "own kernels on Vulkan"
"$zoo" verify --kernels --device wgpu
in_time "own kernels in fp16, fused and unfused parity"
"$zoo" verify --kernels --device wgpu --compute fp16

in_time "parity, fused and unfused"
step "fused operations on Vulkan; kernels are kept in the home and nowhere else"
rm -rf "$ZOO_HOME/kernels"
mkdir "$scratch/elsewhere" "$scratch/user"
kept=$ZOO_HOME/kernels
# A database and what was written to it last; reading changes neither.
kernels() { cat "$kept"/wgpu*.db "$kept"/wgpu*.db-wal | sha256sum; }
# Without the driver's own cache, which would make a second time quicker too.
parity() (
    cd "$scratch/elsewhere"
    export HOME=$scratch/user XDG_CACHE_HOME=$scratch/user MESA_SHADER_CACHE_DISABLE=true
    "$zoo" verify reversal-transformer --to parity --device wgpu
)
SECONDS=0
parity
first=$SECONDS
if [ "$(cat "$kept"/wgpu*.db "$kept"/wgpu*.db-wal | wc -c)" -lt 100000 ]; then
    echo "error: no kernels were kept in $kept" >&2
    exit 1
fi
before=$(kernels)
SECONDS=0
parity
echo "parity took $first s, and $SECONDS s with the kernels of the first time" >&2
if [ "$before" != "$(kernels)" ]; then
    echo "error: the second time found out more about kernels than the first" >&2
    exit 1
fi
if [ -n "$(ls -A "$scratch/elsewhere")" ] || [ -n "$(find "$scratch/user" -ipath '*cubecl*' -o -name '*.db')" ]; then
    echo "error: kernels were kept outside of the home" >&2
    exit 1
fi
"$zoo" doctor --device wgpu | grep "^ok .*kernels .* in [0-9]* files"
in_time "parity in fp16, and unfused"
"$zoo" verify reversal-transformer --to parity --device wgpu --compute fp16

in_time "unfused operations"
step "unfused operations on Vulkan"
build wgpu-unfused
"$zoo" verify --kernels --device wgpu
"$zoo" verify reversal-transformer --to parity --device wgpu
