#!/usr/bin/env bash
# Trains every plan of plans.sh on the same tokens, one run after another on each GPU.
# Usage: run.sh FOLDER [SECONDS [MODEL]]    no run begins after so many seconds (default: 3600), and only those of one model where it
# is named, small or wide. Writes FOLDER/losses.json, anew behind every run, so that what is finished is there when something ends
# the script
set -euo pipefail
cd "$1"
limit=${2:-3600} model=${3:-}
export LD_LIBRARY_PATH=$PWD/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
rm -rf logs claims
mkdir logs claims
if [ ! -d shards ]; then
  python3 tokenizer.py corpus.txt 10000 tokenizer.json
  ./hydra-data build corpus.txt '--split=at:<|endoftext|>' --tokenizer=tokenizer.json '--end=<|endoftext|>' -o shards
fi
echo "tokens are there after $SECONDS s"

settings=(bf16 {hybrid,e4m3}-{tensor,row,block128})
runs=()
for setting in "${settings[@]}" hybrid-delayed; do runs+=("small-$setting 1"); done
for seed in 2 3; do
  for setting in "${settings[@]}"; do runs+=("small-$setting $seed"); done
done
for seed in 1 2 3; do runs+=("wide-bf16 $seed"); done
for setting in "${settings[@]:1}" hybrid-delayed; do runs+=("wide-$setting 1"); done
for seed in 2 3; do
  for setting in "${settings[@]:1}"; do runs+=("wide-$setting $seed"); done
done

collect() { # one at a time; the file is whole at any time
  flock claims sh -c 'python3 collect.py logs losses.part && mv losses.part losses.json'
}

worker() { # GPU: takes the next run that nobody has
  local gpu=$1 run plan seed begin
  for run in "${runs[@]}"; do
    read -r plan seed <<< "$run"
    [[ $plan == "$model"* ]] || continue
    [ "$SECONDS" -lt "$limit" ] || return 0
    mkdir "claims/$plan-$seed" 2> /dev/null || continue
    begin=$SECONDS
    if CUDA_VISIBLE_DEVICES=$gpu ./hydra-run "plans/$plan.fb" --data shards --seed "$seed" --steps 2000 \
      --log "logs/$plan-$seed.part" > "logs/$plan-$seed.txt" 2>&1; then
      mv "logs/$plan-$seed.part" "logs/$plan-$seed.jsonl"
      collect || echo "losses.json is without $plan seed $seed"
      echo "$plan seed $seed: $((SECONDS - begin)) s, after $SECONDS s; $(tail -n 1 "logs/$plan-$seed.txt")"
    else
      echo "FAILED $plan seed $seed: $(tail -n 1 "logs/$plan-$seed.txt")"
    fi
  done
}
for gpu in $(nvidia-smi --query-gpu=index --format=csv,noheader); do worker "$gpu" & done
wait
collect
