#!/usr/bin/env bash
# The package: small enough, complete, and at home in any folder. Usage: package.sh BUILD
set -euo pipefail
build=$1
cmake --build "$build" --target package > "$build/package.log" 2>&1 || { tail -n 20 "$build/package.log"; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
size=$(stat -c %s "$build/hydra.tar.xz")
[ "$size" -lt $((60 << 20)) ] || { echo "hydra.tar.xz has $size bytes; at most 60 MiB are wanted"; exit 1; }
tar xf "$build/hydra.tar.xz" -C "$work"
for name in libdnnl2 libstdc++6 llvm-22-dev libasio-dev libgloo0 libpcre2-dev libutf8proc-dev libkissfft-float131; do
  [ -s "$work/hydra/licences/$name" ] || { echo "the licence of $name is missing"; exit 1; }
done
# Nothing but glibc comes from the machine.
for tool in "$work"/hydra/programs/* "$work"/hydra/lib/libhydra-gloo.so; do
  foreign=$(LD_LIBRARY_PATH=$work/hydra/lib ldd "$tool" |
    awk -v here="$work" '$2 == "=>" && index($3, here) != 1 && $1 !~ /^lib(c|m|dl|pthread|rt)\.so/')
  [ -z "$foreign" ] || { echo "$tool needs $foreign"; exit 1; }
done
mv "$work/hydra" "$work/elsewhere"
run() { env -i PATH=/usr/bin:/bin "$@"; }
run "$work/elsewhere/bin/hydrac" "$work/elsewhere/models/llama.mlir" --preset=tiny --batch=2 --seq=16 -o "$work/plan.fb"
run "$work/elsewhere/bin/hydra-run" "$work/plan.fb" --steps 2
run "$work/elsewhere/bin/hydra-inspect" "$work/plan.fb" > /dev/null
run "$work/elsewhere/bin/hydra-data" --help > /dev/null
run "$work/elsewhere/bin/hydra-tokenize" --help > /dev/null
run "$work/elsewhere/bin/hydra-bench" "$work/elsewhere/tools/bench/cs336-time.json" --axis preset=tiny --axis seq=16 \
  --axis target=cpu --steps 2 > /dev/null 2>&1
# Several ranks; and plans for one do not even look for what connects them.
run "$work/elsewhere/bin/hydrac" "$work/elsewhere/models/llama.mlir" --preset=tiny --batch=2 --seq=16 --mesh=data:2 \
  -o "$work/ranks.fb"
run "$work/elsewhere/bin/hydra-run" "$work/ranks.fb" --ranks=2 --steps 2
mv "$work"/elsewhere/lib/libhydra-gloo.so "$work/elsewhere/lib/libgloo.so.0" "$work"
run "$work/elsewhere/bin/hydra-run" "$work/plan.fb" --steps 2
! run "$work/elsewhere/bin/hydra-run" "$work/ranks.fb" --ranks=2 --steps 2 2> "$work/errors"
[ "$(wc -l < "$work/errors")" = 1 ] && grep -q 'need libhydra-gloo.so' "$work/errors" || { cat "$work/errors"; exit 1; }
run "$work/elsewhere/bin/hydra-opt" "$work/elsewhere/models/llama.mlir" > /dev/null
# An editor's server, which is given nothing but the end of a session.
! run "$work/elsewhere/bin/hydra-lsp" < /dev/null 2> "$work/errors"
grep -q "hydra-lsp: standard input ended without 'exit'" "$work/errors" || { cat "$work/errors"; exit 1; }
# Links to the programs find their libraries, too.
ln -s "$work/elsewhere/bin/hydra-interpret" "$work/interpret"
run "$work/interpret" --help > /dev/null
echo "hydra.tar.xz: $size bytes"
