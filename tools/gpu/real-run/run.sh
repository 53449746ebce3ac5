#!/usr/bin/env bash
# GPT-2 124M on real text, as a user would train it: a run that is killed after some minutes and resumed; PyTorch beside it on a
# second GPU if there is one.
# Usage: run.sh FOLDER first|second [SECONDS]    FOLDER has hydra-run, hydra-data, lib/ with their libraries,
#   gpt2.json (GPT-2's tokenizer.json), corpus.txt (corpus.py), plan.fb and torch_train.py
# The plan: hydrac models/gpt2.mlir --preset=124M --set wd=0.1,beta2=0.95 --batch=32 --accum=2 --seq=1024 --precision=bf16 \
#   --target=h200 --lr=6e-4 --min-lr=6e-5 --schedule=cosine --warmup=300 -o plan.fb
set -euo pipefail
cd "$1"
part=$2 seconds=${3:-420}
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
[ "$(nvidia-smi --list-gpus | wc -l)" -gt 1 ] && peer=1 || peer=

if [ "$part" = first ]; then
  time ./hydra-data build corpus.txt '--split=at:<|endoftext|>' --tokenizer=gpt2.json '--end=<|endoftext|>' -o shards
  ./hydra-run plan.fb --data shards --bench=10 --bench-json bench.json > bench.txt 2>&1
  ms=$(python3 -c 'import json, statistics; print(1e3 * statistics.median(json.load(open("bench.json"))["step_seconds"]))')
  # Both parts together, less what starting and measuring take.
  awk -v ms="$ms" -v seconds="$seconds" 'BEGIN { print int(2 * seconds * 0.93 * 1000 / ms / 100) * 100 }' > steps
  echo "one step $ms ms, $(cat steps) steps"
fi
steps=$(cat steps)
if [ -n "$peer" ]; then
  CUDA_VISIBLE_DEVICES=1 python3 torch_train.py shards "$steps" "$seconds" torch.pt torch.jsonl > "torch-$part.txt" 2>&1 &
  peer=$!
fi
export CUDA_VISIBLE_DEVICES=0
if [ "$part" = first ]; then
  ./hydra-run plan.fb --data shards --seed 1 --steps "$steps" --eval-every 500 --eval-batches 40 --save-every 500 --keep 2 \
    --run run > first.txt 2>&1 &
  run=$!
  sleep "$seconds"
  kill -9 "$run"
  wait "$run" || echo "killed with status $?"
else
  timeout $((seconds + 60)) ./hydra-run --resume run > second.txt 2>&1
fi
[ -z "$peer" ] || wait "$peer"
tail -n 3 ./*"$part".txt first.txt
