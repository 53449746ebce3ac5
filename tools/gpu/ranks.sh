#!/usr/bin/env bash
# On a machine with several GPUs, in the unpacked package: bits, faults, a long run, and a table of times.
# Usage: ranks.sh [bits] [faults] [long] [bench] [lines]    default: all but lines; about six minutes on two H200
#        lines: for which exchanges nothing computes, and why, by the time lines of all ranks (alone.md)
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
gpus=$(cat gpus)
wanted=" ${*:-bits faults long bench} "
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
export LD_LIBRARY_PATH=$PWD/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
without_nccl=$LD_LIBRARY_PATH
# NCCL of the system, else of a Python that has it.
if ! ldconfig -p | grep -q 'libnccl\.so\.2'; then
  for packages in $(python3 -c 'import site; print(*site.getsitepackages())' 2> /dev/null); do
    [[ -e $packages/nvidia/nccl/lib/libnccl.so.2 ]] && LD_LIBRARY_PATH+=:$packages/nvidia/nccl/lib && break
  done
fi
nvidia-smi --query-gpu=name,driver_version,memory.free --format=csv,noheader

check() { # name command...: one line, and a count of failures
  local name=$1
  shift
  if "$@" > "$work/log" 2>&1; then
    echo "ok      $name"
  else
    echo "FAILED  $name: $(tail -n 1 "$work/log")"
    failed=$((failed + 1))
  fi
}
# A run on all GPUs that fails at its start, with one line, which matches.
refuses() { # pattern VARIABLE=VALUE
  env "$2" timeout 60 bin/hydra-run bits/cs336-ddp.fb --gpus="$gpus" --steps 1 > /dev/null 2> "$work/errors" && return 1
  grep -v 'initial parameters of seed' "$work/errors" > "$work/lines"
  cat "$work/lines"
  [[ $(wc -l < "$work/lines") == 1 ]] && grep -Eq "$1" "$work/lines"
}
several=(timeout 120 bin/hydra-run)
data=(--data text --tokenizer=bytes --seed 1 --eval-batches 2)

if [[ $wanted == *" bits "* ]]; then
  for plan in bits/*-ddp.fb; do
    name=$(basename "$plan" -ddp.fb)
    check "$name on one GPU" "${several[@]}" bits/$name-one.fb "${data[@]}" --steps 20 --save "$work/$name-one"
    one=$(grep -ao 'held-out loss [0-9.]*' "$work/log" | tail -n 1)
    for kind in ddp zero1 fsdp; do
      check "$name on $gpus, $kind" "${several[@]}" bits/$name-$kind.fb --gpus="$gpus" "${data[@]}" --steps 20 --save "$work/$name-$kind"
      loss=$(grep -ao 'held-out loss [0-9.]*' "$work/log" | tail -n 1)
      if [[ $name == hydra ]]; then
        check "$name, $kind: the loss of one GPU: ${one##* } and ${loss##* }" \
          awk -v a="${one##* }" -v b="${loss##* }" 'BEGIN { d = a - b; exit !(a > 0 && b > 0 && d < 1e-4 && d > -1e-4) }'
        check "$name, $kind: the bytes of ddp" diff -r "$work/$name-"{ddp,$kind}
      else
        check "$name, $kind: the bytes of $gpus micro-batches on one GPU" diff -r "$work/$name-"{one,$kind}
      fi
    done
    if [[ -f bits/$name-parts.fb ]]; then
      check "$name: $((2 * gpus)) micro-batches on one GPU" "${several[@]}" bits/$name-one-parts.fb "${data[@]}" --steps 20 --save "$work/$name-one-parts"
      check "$name on $gpus, two micro-batches each" "${several[@]}" bits/$name-parts.fb --gpus="$gpus" "${data[@]}" --steps 20 --save "$work/$name-parts"
      check "$name: their bytes" diff -r "$work/$name-"{one-parts,parts}
    fi
    # Ten steps on several GPUs, then on one (HYDRA: on several again).
    on=(bits/$name-one.fb)
    [[ $name == hydra ]] && on=(bits/$name-ddp.fb --gpus="$gpus")
    "${several[@]}" bits/$name-fsdp.fb --gpus="$gpus" "${data[@]}" --steps 10 --save "$work/$name-pause" > "$work/log" 2>&1
    check "$name goes on elsewhere" "${several[@]}" "${on[@]}" "${data[@]}" --steps 20 --save "$work/$name-pause" --resume auto
    check "$name has the same bytes after a pause" diff -r "$work/$name-"{pause,ddp}/step-00000020
    rm -rf "$work/$name-"*
  done
  for plan in again/*.fb; do
    name=$(basename "$plan" .fb)
    for run in 1 2 3 4; do
      check "$name, run $run" "${several[@]}" "$plan" --gpus="$gpus" --steps 6 --outputs "$work/$name-$run.safetensors"
      check "$name, run $run: the bytes of the first" cmp "$work/$name-"{1,$run}.safetensors
    done
    rm -f "$work/$name-"*
  done
fi

newest() { # folder: the step of its newest checkpoint, 0 if there is none
  local last
  last=$(ls "$1" 2> /dev/null | grep '^step-' | tail -n 1)
  echo $((10#0${last#step-}))
}
# Starts a run that saves often, and waits until it has saved; its number is in $run, those of its ranks in ${ranks[@]}.
begin() { # folder flags...
  local folder=$1 before
  shift
  before=$(newest "$folder")
  bin/hydra-run bits/cs336-fsdp.fb --gpus="$gpus" "${data[@]}" --steps 100000000 --save-every 50 --keep 2 --save "$folder" \
    --resume auto "$@" > "$work/out" 2> "$work/errors" &
  run=$!
  for ((i = 0; i < 600; ++i)); do
    [[ $(newest "$folder") -gt $before ]] && break
    sleep 0.1
  done
  read -ra ranks < "/proc/$run/task/$run/children"
}
# How the run that was begun ended: within so many seconds, with this status (0: any other), one line on standard error
# (none without a pattern) and no process left.
ended() { # seconds status pattern
  local from=$EPOCHREALTIME status took
  wait "$run"
  status=$?
  took=$(awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
  grep -v 'initial parameters of seed' "$work/errors" > "$work/lines"
  echo "$took s, status $status: $(tr '\n' '|' < "$work/lines")"
  [[ $status == "$2" || $2 == 0 && $status != 0 ]] || return 1
  awk -v took="$took" -v most="$1" 'BEGIN { exit !(took <= most) }' || return 1
  for rank in "${ranks[@]}"; do
    [[ -e /proc/$rank ]] && return 1
  done
  [[ $3 ]] || { [[ ! -s $work/lines ]]; return; }
  [[ $(wc -l < "$work/lines") == 1 ]] && grep -Eq "$3" "$work/lines"
}

if [[ $wanted == *" faults "* ]]; then
  for ((kill = 1; kill <= 5; ++kill)); do
    begin "$work/killed"
    sleep "0.$((RANDOM % 90 + 10))"
    kill -9 "${ranks[kill % gpus]}"
    check "kill $kill, of rank $((kill % gpus))" ended 5 0 "rank $((kill % gpus)) .*died after step [0-9]+: .*; resume from "
    tail -n 1 "$work/log"
  done
  last=$(($(newest "$work/killed") + 50))
  check "resumed to step $last" "${several[@]}" bits/cs336-fsdp.fb --gpus="$gpus" "${data[@]}" --steps $last --save "$work/killed" --resume auto
  check "the same without kills" "${several[@]}" bits/cs336-fsdp.fb --gpus="$gpus" "${data[@]}" --steps $last --save "$work/unkilled"
  last=$(printf 'step-%08d' "$last")
  check "the bytes of a run without kills" diff -r "$work/"{killed,unkilled}/"$last"
  begin "$work/stopped" --rank-timeout 5
  kill -STOP "${ranks[1]}"
  check "rank 1 is stopped" ended 12 0 "rank 1 .*has not answered for 5 s.*; resume from "
  tail -n 1 "$work/log"
  begin "$work/signal"
  kill -INT "$run"
  check "SIGINT" ended 5 130 "after step [0-9]+;"
  tail -n 1 "$work/log"
  begin "$work/twice"
  kill -STOP "${ranks[1]}" # so that the ranks cannot heed the first one
  for i in 1 2; do
    kill -INT "$run"
    sleep 0.3
  done
  check "SIGINT twice" ended 5 130 ""
  check "a rank without a GPU" refuses "rank 0 .* and rank 1 .* have the same GPU" CUDA_VISIBLE_DEVICES=0
  cat "$work/log"
  if ! ldconfig -p | grep -q 'libnccl\.so\.2'; then
    check "no NCCL" refuses 'cannot find NCCL' LD_LIBRARY_PATH="$without_nccl"
    cat "$work/log"
  fi
  check "an old NCCL" refuses 'NCCL is version 2.18.3; expected 2.19.0 or newer' LD_LIBRARY_PATH="$PWD/old:$LD_LIBRARY_PATH"
  cat "$work/log"
fi

if [[ $wanted == *" long "* ]]; then
  for kind in ddp fsdp; do
    check "10,000 captured steps, $kind" timeout 300 bin/hydra-run bits/cs336-$kind.fb --gpus="$gpus" "${data[@]}" --steps 10000 \
      --log-every 1000 --save "$work/long-$kind"
    grep -a 'held-out' "$work/log" | tail -n 1
  done
  check "10,000 steps: the bytes of ddp and of fsdp" diff -r "$work/long-"{ddp,fsdp}
fi

if [[ $wanted == *" bench "* ]]; then
  rm -f results.txt
  for plan in bench/*.fb; do
    name=$(basename "$plan" .fb)
    on=(--gpus="$gpus")
    [[ $name == *-one ]] && on=()
    check "$name measured" "${several[@]}" "$plan" "${on[@]}" --bench=30
    ms=$(awk '/median ms/ { getline; print $1 }' "$work/log")
    gib=$(awk '/peak: arena/ { gsub("\\(", "", $5); printf "%.2f", $5 / 2^30 }' "$work/log")
    exchanges="| | | | |"
    if [[ $name != *-one ]]; then
      check "$name profiled" bash -c "timeout 120 bin/hydra-run $plan ${on[*]} --bench=10 --profile=json > $work/profile.json"
      exchanges=$(python3 - "$work/profile.json" << 'PROFILE'
import json, sys
all = json.load(open(sys.argv[1]))["exchanges"]
total = lambda key: sum(exchange[key] for exchange in all)
print("| {:.0f} | {:.2f} | {:.2f} | {:.2f} |".format(total("wire_bytes") / 2**20, total("microseconds") / 1e3,
                                                  total("alone_microseconds") / 1e3, total("predicted_alone_microseconds") / 1e3))
PROFILE
      )
    fi
    echo "| $name | $ms | $gib $exchanges" | tee -a results.txt
  done
  echo
  echo "$gpus GPUs: median ms of a step, GiB of the arena of one, MiB that one sends, ms of exchanges and how long nothing ran beside them"
  echo "| row | ms | GiB | sent | exchanges | alone | predicted alone |"
  echo "|---|---:|---:|---:|---:|---:|---:|"
  cat results.txt
fi
if [[ $wanted == *" lines "* ]]; then
  rm -f alone.md
  for schedule in bench/*.json; do
    name=$(basename "$schedule" .json)
    check "$name, time lines" timeout 120 bin/hydra-run "bench/$name.fb" --gpus="$gpus" --bench=10 --profile="$work/line.%r.json"
    { echo; echo "## $name"; echo; python3 alone-table.py --each "$schedule" "$work"/line.*.json; } >> alone.md
    rm -f "$work"/line.*.json
  done
  grep -hE '^(## |\| rank )' alone.md
fi
[ "$failed" = 0 ] || echo "$failed checks failed"
[ "$failed" = 0 ]
