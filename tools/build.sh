#!/usr/bin/env bash
# Installs what is missing and builds.
# Usage: tools/build.sh [PRESET [TARGET...]]    a preset of CMakePresets.json: dev (default), release, asan
set -euo pipefail
exec </dev/null
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-dev}
shift || true

tools/install-dependencies.sh

# A file with MLIR headers can take 2 GiB to compile.
jobs=$(nproc)
memory_gib=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
[ $((jobs * 2)) -le "$memory_gib" ] || jobs=$((memory_gib / 2))
[ "$jobs" -ge 1 ] || jobs=1

cmake --preset "$preset"
cmake --build "build/$preset" --parallel "$jobs" ${1:+--target "$@"}
