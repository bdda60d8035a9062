#!/usr/bin/env bash
# Runs a program that was built with `--features cuda` on the stand-in driver.
#
#   run.sh CACHE LOG PROGRAM [ARGUMENT…]
#
# CACHE is what prepare.sh made. LOG gets nvrtc.log, driver.log, the PTX of each kernel, and sources
# that do not compile. Give the program a ZOO_HOME of its own: kernels and choices that were timed
# here must never reach a real card; pack.py takes the kernels alone.
#
#   STANDIN_CARD=h100|a100|v100   the card (h100)
#   STANDIN_DRIVER=12090          the version of CUDA that the driver supports
#   STANDIN_REVERSE=1             the threads of a block in reversed order
#   STANDIN_COMPILE_ONLY=1        no kernel is executed: for pack.py
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cache=$(cd "$1" && pwd)
mkdir -p "$2"/{ptx,sources}
log=$(cd "$2" && pwd)
shift 2
export LD_LIBRARY_PATH="$cache/lib:$cache/root/lib" CUDA_PATH="$cache/root"
export STANDIN_NVRTC="$cache/root/lib/libnvrtc.so.12" STANDIN_LOG="$log" STANDIN_CACHE="$cache" STANDIN_SOURCE="$here"
exec "$@"
