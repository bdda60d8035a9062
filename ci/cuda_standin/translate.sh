#!/usr/bin/env bash
# Translates the PTX of a kernel to a shared library of the host; errors are written to CODE.why.
#
#   translate.sh KERNEL.ptx CODE.so
#
# The processor's fused multiply-add is only used where PTX says `fma`.
set -euo pipefail
# The compiler is the host's: nothing of the stand-in concerns it.
unset LD_LIBRARY_PATH
here=$(cd "$(dirname "$0")" && pwd)
part=$2.$$
trap 'rm -f "$part" "$part.c"' EXIT
{
    python3 "$here/translate" "$1" >"$part.c"
    gcc -w -O1 -march=native -ffp-contract=off -fno-strict-aliasing -I"$here/execute" \
        -shared -fPIC -o "$part" "$part.c" -lm
} 2>"$2.why"
mv "$part" "$2"
