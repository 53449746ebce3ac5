#!/usr/bin/env bash
# Compiles plans of all families and modes with two versions, and compares them: the same file, or the same steps
# (each as its own version shows them), and on the CPU the same bits of parameters and state after two steps. For
# changes that are to change nothing.
# Usage: tools/compare-versions.sh OLD_BIN NEW_BIN [TARGET]    folders with hydrac, hydra-run, hydra-inspect
set -euo pipefail
old=$(realpath "$1") new=$(realpath "$2") target=${3:-cpu}
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

plans=(
  "cs336 --preset=tiny --batch=2 --seq=32"
  "cs336 --preset=tiny --batch=2 --seq=32 -O0"
  "cs336 --preset=tiny --batch=2 --seq=32 --precision=bf16"
  "cs336 --preset=tiny --batch=2 --seq=32 --precision=pure_bf16"
  "cs336 --preset=tiny --batch=2 --seq=32 --accum=3"
  "cs336 --preset=tiny --batch=2 --seq=32 --no-clip"
  "cs336 --preset=tiny --batch=2 --seq=32 --recompute=every=1"
  "cs336 --preset=tiny --batch=2 --seq=32 --recompute=rowwise"
  "cs336 --preset=tiny --batch=2 --seq=32 --attention=naive"
  "cs336 --preset=tiny --batch=2 --seq=32 --ce-chunk=7"
  "llama --preset=bytes --batch=4 --seq=64"
  "llama --preset=bytes --batch=4 --seq=64 --precision=bf16"
  "llama --preset=tiny --batch=3 --seq=31 --precision=bf16 --recompute=rowwise,every=2"
  "gpt2 --preset=tiny --batch=2 --seq=32"
  "gpt2 --preset=tiny --batch=2 --seq=32 --precision=bf16"
  "gpt2 --preset=tiny --batch=2 --seq=32 --accum=2"
  "ttt --preset=bytes --batch=2 --seq=72"
  "ttt --preset=bytes --batch=1 --seq=72 --precision=bf16"
  "ttt --preset=bytes --batch=1 --seq=144 --scan-checkpoint=4"
  "ttt --preset=ref --batch=2 --seq=24"
  "megalodon --preset=bytes --batch=2 --seq=72"
  "megalodon --preset=bytes --batch=2 --seq=72 --precision=bf16"
  "megalodon --preset=ref --batch=2 --seq=16 --set ema=sequential"
  "megalodon --preset=ref --batch=2 --seq=16 --set ema=fft"
  "deltanet --preset=bytes --batch=2 --seq=72"
  "ttt --preset=bytes-mlp --batch=2 --seq=72"
  "hydra --preset=bytes --batch=2 --seq=48"
  "hydra --preset=bytes --batch=2 --seq=48 --precision=bf16"
  "hydra --preset=ref --batch=2 --seq=16 --routing=masked"
  "hydra --preset=ref --batch=2 --seq=16 --routing=static"
  "hydra --preset=ref --batch=2 --seq=16 --accum=2"
)

# What a plan computes, without its header and code.
steps() { "${!1}/hydra-inspect" "$work/$1.fb" --steps | grep -v '^  *produced\|hydrac\|passes\|plan format'; }

# Tensors may stand in another order.
sameTensors() {
  cmp -s "$work/old/$1" "$work/new/$1" ||
    "$new/compare-tensors" "$work/new/$1" "$work/old/$1" 0 >/dev/null 2>&1
}

differ=0
for plan in "${plans[@]}"; do
  read -r model flags <<<"$plan"
  for side in old new; do
    # shellcheck disable=SC2086
    "${!side}/hydrac" "models/$model.mlir" $flags --target="$target" -o "$work/$side.fb"
  done
  if cmp -s "$work/old.fb" "$work/new.fb"; then
    verdict="same plan"
  else
    others=$(diff <(steps old) <(steps new) | grep -c '^[<>]' || true)
    verdict="same steps"
    [ "$others" = 0 ] || verdict="OTHER STEPS ($others lines)" differ=1
    if [ "$target" = cpu ]; then
      for side in old new; do
        "${!side}/hydra-run" "$work/$side.fb" --steps 2 --threads 2 --save "$work/$side" >/dev/null 2>&1 || true
      done
      weights=$(cd "$work/new" && find . -name '*.safetensors' | sort | head -1)
      if [ -n "$weights" ] && sameTensors "$weights"; then
        verdict="$verdict, same bits"
      else
        verdict="$verdict, OTHER BITS" differ=1
      fi
      rm -rf "$work/old" "$work/new"
    fi
  fi
  printf '%-80s %s\n' "$plan" "$verdict"
done
exit $differ
