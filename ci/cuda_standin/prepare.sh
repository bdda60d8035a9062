#!/usr/bin/env bash
# Fetches NVRTC, its headers and ptxas as wheels (130 MB, kept), and builds the stand-in driver.
#
#   prepare.sh CACHE
#
# Ends with code 3 and says why where something for it cannot be had.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "${1:?name a folder to keep things in}"
cache=$(cd "$1" && pwd)

missing() {
    echo "note: $*" >&2
    exit 3
}
for program in python3 gcc; do
    command -v "$program" >/dev/null || missing "$program is not installed"
done
# The stacks of fibers are switched in its assembler.
[ "$(uname -sm)" = "Linux x86_64" ] || missing "the stand-in driver runs on x86-64 Linux only"

wheels=(nvidia-cuda-nvrtc-cu12==12.9.86 nvidia-cuda-runtime-cu12==12.9.79
    nvidia-cuda-nvcc-cu12==12.9.86 nvidia-cuda-cccl-cu12==12.9.27)
root=$cache/root
if [ ! -e "$root/complete" ]; then
    # As python3 is configured to fetch packages; what was fetched before is not fetched again.
    timeout 600 python3 -m pip download --quiet --no-deps --only-binary :all: --dest "$cache/wheels" "${wheels[@]}" >&2 ||
        missing "the wheels of NVRTC cannot be downloaded with pip: ${wheels[*]}"
    rm -rf "$root" "$cache/unpacked"
    mkdir -p "$root"
    for wheel in "$cache"/wheels/*.whl; do python3 -m zipfile -e "$wheel" "$cache/unpacked"; done
    for folder in "$cache"/unpacked/nvidia/*/{include,lib,bin}; do
        [ -d "$folder" ] && cp -r "$folder" "$root/"
    done
    chmod +x "$root"/bin/*
    rm -rf "$cache/unpacked"
    touch "$root/complete"
fi

mkdir -p "$cache"/{lib,translated}
options=(-O1 -g -Wall -Werror -shared -fPIC -Wl,-Bsymbolic -isystem "$root/include")
gcc "${options[@]}" -o "$cache/lib/libcuda.so.1" "$here"/driver/*.c "$here"/execute/*.c -ldl -lpthread
gcc "${options[@]}" -o "$cache/lib/libnvrtc.so" "$here/nvrtc.c" -ldl
ln -sf libcuda.so.1 "$cache/lib/libcuda.so"
# Kernels that another translator made.
translator=$(cat "$here"/translate/*.py "$here"/execute/{thread,values}.h "$here/translate.sh" | sha256sum)
if [ "$translator" != "$(cat "$cache/translator" 2>/dev/null)" ]; then
    rm -f "$cache"/translated/*
    echo "$translator" >"$cache/translator"
fi
