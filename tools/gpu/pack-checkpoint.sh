#!/usr/bin/env bash
# Packs what a machine with several GPUs needs to time the checkpoints of a large model: Llama with the sizes of
# Llama 2 7B under fsdp, two rows of 256 tokens a GPU. That machine needs NVIDIA's driver, CUDA 13's cuBLASLt and NCCL.
# Usage: tools/gpu/pack-checkpoint.sh [BUILD] [GPUS] [OUT]    writes OUT/gpu-checkpoint.tar.xz (OUT: BUILD), for 2 GPUs
#        unless said otherwise; there: tar xf gpu-checkpoint.tar.xz && gpu-checkpoint/checkpoint.sh
#        LAYERS=16 tools/gpu/pack-checkpoint.sh               for a disk that does not hold 81 GB, or is slow
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
build=${1:-build/dev} gpus=${2:-2}
out=${3:-$build}/gpu-checkpoint
rm -rf "$out" "$out.tar.xz"
mkdir -p "$out"/{bin,lib}
cp tools/gpu/checkpoint.sh "$out"
echo "$gpus" > "$out/ranks"
strip -o "$out/bin/hydra-run" "$build/bin/hydra-run"
ldd "$build/bin/hydra-run" | awk '$2 == "=>" && $1 !~ /^lib(c|m|stdc\+\+|gcc_s)\./ { print $3 }' |
  xargs -I{} cp -L {} "$out/lib/"
sizes=(D=4096 F=11008 L="${LAYERS:-32}" H=32 Hk=32 V=32000 rope=1e4)
"$build/bin/hydrac" models/llama.mlir "${sizes[@]/#/--set=}" --precision=bf16 --batch=$((2 * gpus)) --seq=256 \
  --no-clip --mesh="data:$gpus" --shard=fsdp --target=h200 -o "$out/plan.fb"
tar cJf "$out.tar.xz" -C "${3:-$build}" gpu-checkpoint
ls -l "$out.tar.xz"
