#!/usr/bin/env bash
# Tests on the machine's GPU: packs and runs tools/gpu. Exit status 77, with the reason: skipped.
# Usage: gpu.sh SOURCE BUILD
set -euo pipefail
if ! ldconfig -p | grep -q 'libcuda\.so\.1'; then
  echo "skipped: this machine has no NVIDIA driver (libcuda.so.1)"
  exit 77
fi
"$1/tools/gpu/pack.sh" "$2"
"$2/gpu/run.sh" test
