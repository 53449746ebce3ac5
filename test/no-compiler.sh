#!/usr/bin/env bash
# Fails if a program holds a symbol or a string of the compiler's libraries: what runs plans knows
# nothing of MLIR and LLVM (docs/architecture.md).
# Usage: no-compiler.sh PROGRAM...
set -euo pipefail

failed=0
for program; do
  # Symbols stand in the file as they are mangled, names of libraries as they are.
  found=$(grep -aoiE '[[:print:]]*(mlir|N4llvm|llvm::|libLLVM)[[:print:]]*' "$program" | head -n 3 || true)
  if [ -n "$found" ]; then
    echo "$program holds:" $found
    failed=1
  fi
done
exit $failed
