#!/usr/bin/env bash
# What run.sh needs to train in bf16 and in 8 bits: plans, programs and their libraries.
# Usage: plans.sh FOLDER [BUILD]    there: a text FOLDER/corpus.txt (../real-run/corpus.py), then run.sh FOLDER
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../../.."
out=$1 build=${2:-build/dev}
mkdir -p "$out/plans" "$out/lib"
for program in hydra-run hydra-data; do
  strip -o "$out/$program" "$build/bin/$program"
done
ldd "$build/bin/hydra-run" "$build/bin/hydra-data" | awk '$2 == "=>" && $1 !~ /^lib(c|m|stdc\+\+|gcc_s)\./ { print $3 }' | sort -u |
  xargs -I{} cp -L {} "$out/lib/"
cp tools/gpu/fp8-curves/{run.sh,tokenizer.py,collect.py} "$out"

plan() { # name, flags
  "$build/bin/hydrac" models/cs336.mlir "${@:2}" --batch=8 --seq=512 --lr=6e-4 --min-lr=6e-5 --schedule=cosine --warmup=200 \
    --safe=off --target=h200 -o "$out/plans/$1.fb"
}
model() { # name, flags: bf16, formats by scalings, delayed scales
  plan "$1-bf16" "${@:2}" --precision=bf16
  for format in hybrid e4m3; do
    for scaling in tensor row block128; do
      plan "$1-$format-$scaling" "${@:2}" --precision=fp8 --fp8-format=$format --fp8-scaling=$scaling $keep
    done
  done
  plan "$1-hybrid-delayed" "${@:2}" --precision=fp8 --fp8-amax=delayed $keep
}
keep=
model small --preset=small
keep=--fp8-keep=none # of four layers the first and the last would be half
model wide --preset=2.7B --set L=4
