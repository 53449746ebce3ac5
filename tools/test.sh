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
# What hangs fails, by its name; lit has a limit for each of its tests.
ctest --test-dir "build/$preset" --timeout 900 --parallel "$(nproc)" --output-on-failure --no-tests=error
