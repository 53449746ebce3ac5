#!/usr/bin/env bash
# Compiles the plans by which a machine is calibrated: few layers of transformers of several widths and lengths, and of
# the other families. Then, on the machine:  cd FOLDER && first=(*.fb) && hydra-run $first --calibrate ${first[@]:1} -o target.json
# Usage: tools/calibrate.sh TARGET FOLDER [BUILD]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
target=$1 folder=$2 hydrac=${3:-build/dev}/bin/hydrac
mkdir -p "$folder"
compile() { # name, flags of hydrac
  "$hydrac" "${@:2}" --target="$target" -o "$folder/$1.fb"
}
transformer() { # name D F H L S precision, flags
  compile "$1-$6-$7" models/cs336.mlir --preset=small --set "D=$2,F=$3,H=$4,L=$5" --batch=4 --seq="$6" --precision="$7" "${@:8}"
}
if [[ $target == cpu ]]; then
  for seq in 128 256; do
    for mode in train forward; do
      flags=(--mode=$mode)
      [[ $mode == train ]] && flags+=(--no-clip) || flags+=(--program=loss:loss)
      transformer "a-$mode" 768 3072 12 2 $seq fp32 "${flags[@]}"
      transformer "b-$mode" 1024 4096 16 2 $seq fp32 "${flags[@]}"
    done
  done
  exit
fi
while read -r name width ffn heads layers; do
  for seq in 128 256 512 1024; do
    for precision in bf16 fp32; do
      transformer "$name" $width $ffn $heads $layers $seq $precision --mode=train --no-clip
    done
  done
  transformer "$name-grad" $width $ffn $heads $layers 512 bf16 --mode=grad
  transformer "$name" $width $ffn $heads $layers 512 fp8 --mode=train --no-clip --safe=off --fp8-keep=none
  transformer "$name-delayed" $width $ffn $heads $layers 1024 fp8 --mode=train --no-clip --safe=off --fp8-keep=none --fp8-amax=delayed
  transformer "$name-forward" $width $ffn $heads $layers 256 bf16 --mode=forward --program=loss:loss
done << 'WIDTHS'
a 768 3072 12 4
b 1024 4096 16 4
c 1280 5120 20 3
d 1600 6400 25 3
e 2560 10240 32 2
f 2048 5632 32 2
WIDTHS
while read -r name flags; do
  compile "$name" $flags --precision=bf16 --no-clip
done << 'FAMILIES'
gpt2 models/gpt2.mlir --preset=124M --set L=3 --batch=4 --seq=512
llama models/llama.mlir --preset=llama-160m --set L=3 --batch=4 --seq=512
hydra models/hydra.mlir --preset=profile-100M-as-run --lr=1e-3 --batch=4 --seq=512
hydra-static models/hydra.mlir --preset=profile-100M-as-run --lr=1e-3 --set mor=static --batch=4 --seq=512
megalodon models/megalodon.mlir --preset=profile-train --lr=1e-3 --batch=1 --seq=1024
megalodon-fft models/megalodon.mlir --preset=profile-train --lr=1e-3 --set ema=fft --batch=1 --seq=1024
megalodon-long models/megalodon.mlir --preset=profile-train --lr=1e-3 --set ema=fft --batch=1 --seq=4096
ttt models/ttt.mlir --preset=bringup_1p3b --set V=256,L=3 --batch=1 --seq=1024
FAMILIES
