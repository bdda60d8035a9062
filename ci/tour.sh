#!/usr/bin/env bash
# Runs the commands of docs/tour.md and writes their output into the page, or compares it with it.
#
#   ci/tour.sh target/debug/zoo            # write the page
#   ci/tour.sh target/debug/zoo --check    # exit code 1 and a diff if the page differs
#
# ci/tour.py describes the page's directives and the patterns. Without python3, the script prints a
# note and ends with code 0.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v python3 >/dev/null; then
    echo "note: python3 is missing; docs/tour.md was not checked" >&2
    exit 0
fi
exec python3 ci/tour.py "$@"
