#!/usr/bin/env bash
# Packs what a machine with several GPUs needs to test and measure plans for several ranks: programs and plans.
# That machine needs NVIDIA's driver, CUDA 13's cuBLASLt and NCCL; no compiler and no MLIR.
# Usage: tools/gpu/pack-ranks.sh [BUILD] [GPUS] [TARGET]    writes BUILD/gpu-ranks.tar.xz, for 2 GPUs and h200 unless said otherwise;
#                                                           there: tar xf gpu-ranks.tar.xz && gpu-ranks/ranks.sh
#        REDUCE=bf16 tools/gpu/pack-ranks.sh                for rows that send gradients in 16 bits
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build/dev} gpus=${2:-2} target=${3:-h200}
out=$build/gpu-ranks
rm -rf "$out" "$out.tar.xz"
mkdir -p "$out"/{bin,lib,old,bits,again,bench}
cp tools/gpu/ranks.sh tools/bench/alone-table.py "$out"
cp data/tinyshakespeare.txt "$out/text"
echo "$gpus" > "$out/gpus"
strip -o "$out/bin/hydra-run" "$build/bin/hydra-run"
ldd "$build/bin/hydra-run" | awk '$2 == "=>" && $1 !~ /^lib(c|m|stdc\+\+|gcc_s)\./ { print $3 }' |
  xargs -I{} cp -L {} "$out/lib/"
# A library that says it is NCCL 2.18.3, and has the functions that are looked up.
{
  echo 'extern "C" int ncclGetVersion(int *version) { *version = 21803; return 0; }'
  grep -o '^  X(nccl[A-Za-z]*)' runtime/cuda/Nccl.cpp | sed 's/^  X(\(.*\))/\1/' | grep -v ncclGetVersion |
    sed 's/.*/extern "C" int &() { return 3; }/'
} > "$out/old.cpp"
"${CXX:-g++}" -shared -fPIC -o "$out/old/libnccl.so.2" "$out/old.cpp"
rm "$out/old.cpp"

compile() { "$build/bin/hydrac" "$@" --target="$target"; }
# Training in f32, without a clip, parameters cut whatever their size: N micro-batches on one GPU and N GPUs make the
# same bytes. HYDRA balances the experts of a batch, so one GPU has its whole batch there.
while read -r name batch flags; do
  read -ra one <<< "--batch=$batch --accum=$gpus"
  [[ $name == hydra ]] && one=("--batch=$((batch * gpus))")
  compile $flags --no-clip "${one[@]}" -o "$out/bits/$name-one.fb"
  for kind in ddp zero1 fsdp; do
    read -ra shard <<< "--shard=$kind --whole-below=0"
    [[ $kind == ddp ]] && shard=()
    compile $flags --no-clip --batch=$((batch * gpus)) --mesh="data:$gpus" "${shard[@]}" -o "$out/bits/$name-$kind.fb"
  done
  # Micro-batches on several GPUs: of half the rows.
  [[ $name == hydra ]] && continue
  compile $flags --no-clip --batch=$((batch / 2)) --accum=$((2 * gpus)) -o "$out/bits/$name-one-parts.fb"
  compile $flags --no-clip --batch=$((batch / 2 * gpus)) --accum=2 --mesh="data:$gpus" --shard=fsdp --whole-below=0 \
    -o "$out/bits/$name-parts.fb"
done << 'FAMILIES'
cs336 4 models/cs336.mlir --preset=tiny --set V=256 --seq=32
llama 4 models/llama.mlir --preset=bytes --seq=64
gpt2 4 models/gpt2.mlir --preset=tiny --set V=256 --seq=32
ttt 4 models/ttt.mlir --preset=bytes --seq=64
megalodon 4 models/megalodon.mlir --preset=bytes --seq=64
hydra 4 models/hydra.mlir --preset=bytes --seq=64
FAMILIES

# Rounded, with a clip, by copy engines: every run makes the same bytes.
while read -r name flags; do
  compile models/llama.mlir --preset=tiny --set D=256,H=4,Hk=2,F=640,L=4,V=256 --batch=$((4 * gpus)) --seq=256 --mesh="data:$gpus" $flags \
    -o "$out/again/$name.fb"
done << 'AGAIN'
bf16-ddp --precision=bf16
bf16-zero1 --precision=bf16 --shard=zero1
bf16-fsdp --precision=bf16 --shard=fsdp
fp8-fsdp --precision=fp8 --fp8-keep=none --shard=fsdp
f32-ddp --no-clip
halves-fsdp --precision=bf16 --split-master --shard=fsdp
AGAIN

# The rows of docs/laboratory.md: a name, rows of the batch of one GPU, kinds, and flags. As many layers of the 47B as
# leave a GPU the memory that it would have as one of eight with all 48.
while read -r name batch kinds flags; do
  for kind in ${kinds//,/ }; do
    read -ra shard <<< "--batch=$((batch * gpus)) --mesh=data:$gpus --reduce=${REDUCE:-f32} --shard=${kind%-never}"
    [[ $kind == *-never ]] && shard+=(--reshard=never)
    [[ $kind == one ]] && shard=(--batch="$batch")
    compile $flags --precision=bf16 --no-clip "${shard[@]}" -o "$out/bench/$name-$kind.fb"
    [[ $kind == one ]] || "$build/bin/hydra-inspect" "$out/bench/$name-$kind.fb" --predict --json > "$out/bench/$name-$kind.json"
  done
done << ROWS
small-4x1024 4 one,ddp,zero1,fsdp,fsdp-never models/cs336.mlir --preset=small --seq=1024
medium-4x512 4 one,ddp,zero1,fsdp,fsdp-never models/cs336.mlir --preset=medium --seq=512
xl-4x512 4 one,ddp,zero1,fsdp,fsdp-never models/cs336.mlir --preset=xl --seq=512
2.7B-4x1024 4 one,ddp,zero1,fsdp,fsdp-never models/cs336.mlir --preset=2.7B --seq=1024
7B-4x2048 4 fsdp,fsdp-never models/cs336.mlir --set=D=4096,F=11008,L=32,H=32,V=32000 --seq=2048
47B-1x2048 1 fsdp models/ttt.mlir --preset=ttt_llama_47b --set=L=$((6 * gpus)) --seq=2048 --recompute=none
ROWS
tar cJf "$out.tar.xz" -C "$build" gpu-ranks
ls -l "$out.tar.xz"
