#!/usr/bin/env bash
# Packs all programs, models and documents for other Linux machines: what `cmake --build BUILD --target package`
# runs when the portable programs are built. Usage: tools/package.sh [BUILD]    writes BUILD/hydra.tar.xz
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/dev}
out=$build/package/hydra
rm -rf "$out" "$build/hydra.tar.xz"
mkdir -p "$out"/{programs,lib,bin}
for tool in hydrac hydra-opt hydra-interpret; do
  strip -o "$out/programs/$tool" "$build/bin/$tool-portable"
done
for tool in hydra-run hydra-inspect; do
  strip -o "$out/programs/$tool" "$build/bin/$tool"
done
# The libraries they were linked with, but for those of glibc.
for tool in "$out"/programs/*; do
  ldd "$tool" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|pthread|rt)\.so/ { print $3 }'
done | sort -u | xargs -I{} cp -L {} "$out/lib/"
# Found by the programs wherever the folder is; the machine's own libraries stay what they are for all else.
for tool in "$out"/programs/*; do
  launcher=$out/bin/$(basename "$tool")
  cat > "$launcher" << 'LAUNCHER'
#!/bin/sh
self=$(readlink -f "$0")
here=${self%/bin/*}
LD_LIBRARY_PATH=$here/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} exec "$here/programs/${self##*/}" "$@"
LAUNCHER
  chmod +x "$launcher"
done
cp -r models docs README.md LICENSE "$out/"
tar cJf "$build/hydra.tar.xz" -C "$build/package" hydra
ls -l "$build/hydra.tar.xz"
