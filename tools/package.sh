#!/usr/bin/env bash
# Packs all programs, models and documents for other Linux machines: what `cmake --build BUILD --target package`
# runs when the portable programs are built. Usage: tools/package.sh [BUILD]    writes BUILD/hydra.tar.xz
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
build=${1:-build/dev}
out=$build/package/hydra
rm -rf "$out" "$build/hydra.tar.xz"
mkdir -p "$out"/{programs,lib,bin}
for tool in hydrac hydra-opt hydra-interpret hydra-lsp; do
  strip -o "$out/programs/$tool" "$build/bin/$tool-portable"
done
for tool in hydra-bench hydra-data hydra-run hydra-inspect hydra-tokenize; do
  strip -o "$out/programs/$tool" "$build/bin/$tool"
done
# What hydra-run loads for plans of several ranks.
strip -o "$out/lib/libhydra-gloo.so" "$build/lib/libhydra-gloo.so"
# The libraries they were linked with, but for those of glibc.
libraries=$(for tool in "$out"/programs/* "$out"/lib/libhydra-gloo.so; do
  ldd "$tool" | awk '$2 == "=>" && $1 !~ /^lib(c|m|dl|pthread|rt)\.so/ { print $3 }'
done | sort -u)
xargs -I{} cp -L {} "$out/lib/" <<<"$libraries"
# The licences of what is carried along: of libraries, and of what is linked in or included.
mkdir "$out/licences"
for library in $libraries; do
  # By its path or by that of the file behind it, as the package has it.
  { dpkg-query --search "$library" "$(readlink -f "$library")" 2>/dev/null || true; } | cut -d: -f1
done | sort -u | cat - <(printf '%s\n' llvm-22-dev libmlir-22-dev libcli11-dev libflatbuffers-dev libfmt-dev \
  libspdlog-dev nlohmann-json3-dev libasio-dev libgloo-dev libpcre2-dev libutf8proc-dev zlib1g-dev libzstd-dev) | sort -u | while read -r package; do
  text=/usr/share/doc/$package/copyright
  if [ -e "$text" ]; then cp -L "$text" "$out/licences/$package"; fi
done
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
cp -r models docs editors README.md LICENSE "$out/"
mkdir -p "$out/tools/bench"
cp tools/bench/*.json tools/bench/*.mlir "$out/tools/bench/"
# On every core; machine code gets smaller when its calls name places and not distances.
XZ_OPT="--threads=0 --x86 --lzma2=preset=5" tar cJf "$build/hydra.tar.xz" -C "$build/package" hydra
ls -l "$build/hydra.tar.xz"
