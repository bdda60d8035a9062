#!/usr/bin/env bash
# Runs the commands of docs/tour.md and docs/first-hour.md and writes their output into the pages, or
# compares it with them.
#
#   ci/tour.sh target/debug/zoo            # write the pages
#   ci/tour.sh target/debug/zoo --check    # exit code 1 and a diff if a page differs
#
# ci/tour.py describes the directives and the patterns. Without python3, the script prints a
# note and ends with code 0.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v python3 >/dev/null; then
    echo "note: python3 is missing; the pages were not checked" >&2
    exit 0
fi
exec python3 ci/tour.py "$@"
