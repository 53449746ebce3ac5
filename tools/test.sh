#!/usr/bin/env bash
# Installs what is missing, builds, and runs every test.
# Usage: tools/test.sh [PRESET]    a preset of CMakePresets.json: dev (default), release, asan
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-dev}
tools/build.sh "$preset"
# A file that includes a generated header without depending on it builds only when the order is lucky.
ninja -C "build/$preset" -t missingdeps
ctest --test-dir "build/$preset" --parallel "$(nproc)" --output-on-failure --no-tests=error
