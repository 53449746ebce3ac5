#!/usr/bin/env bash
# On a machine with several GPUs, in the unpacked package of pack-checkpoint.sh: how long a large model takes to start
# from initial values, to save a checkpoint and to resume from it, and whether it then goes on as if nothing had been.
# The disk holds one checkpoint, so what was not interrupted is a run of its own, which saves none.
# Usage: checkpoint.sh [FOLDER]    on whose disk checkpoints are to be, default: that of this script; Llama 7B takes 81 GB
#        ON=--ranks checkpoint.sh  for plans for CPUs
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
ranks=$(cat ranks)
on=("${ON:---gpus}=$ranks")
work=$(mktemp -d "${1:-.}/checkpoint.XXXXXX")
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$PWD/lib:/usr/local/cuda/lib64:${LD_LIBRARY_PATH:-}
# NCCL of the system, else of a Python that has it.
if [[ ${on[0]} == --gpus=* ]]; then
  if ! ldconfig -p | grep 'libnccl\.so\.2' > /dev/null; then
    for packages in $(python3 -c 'import site; print(*site.getsitepackages())' 2> /dev/null); do
      [[ -e $packages/nvidia/nccl/lib/libnccl.so.2 ]] && LD_LIBRARY_PATH+=:$packages/nvidia/nccl/lib && break
    done
  fi
  nvidia-smi --query-gpu=name,driver_version,memory.free --format=csv,noheader
fi
df -h --output=source,fstype,size,avail "$work"

stop() { # message file: the end of the file, and the script
  echo "FAILED  $1" >&2
  tail -n 20 "$2" >&2
  exit 1
}
now() { echo "$EPOCHREALTIME"; }
# Seconds from one time to another.
between() { awk -v from="$1" -v to="$2" 'BEGIN { printf "%.1f", to - from }'; }
# GB/s of so many bytes in so many seconds.
rate() { awk -v bytes="$1" -v seconds="$2" 'BEGIN { if (seconds > 0) printf "%.2f", bytes / 1e9 / seconds }'; }
# A run, by name: when each line came is in NAME.lines, what it says of long work in NAME.errors, losses in NAME.json.
train() { # name flags...
  local name=$1 line
  shift
  echo "$name: hydra-run $*"
  now > "$work/$name.lines"
  timeout 270 bin/hydra-run plan.fb "${on[@]}" --seed 1 --log-every 1 --log "$work/$name.json" "$@" 2> "$work/$name.errors" |
    while IFS= read -r line; do echo "$EPOCHREALTIME $line"; done >> "$work/$name.lines" ||
    stop "$name" "$work/$name.errors"
  grep -a ' in [0-9.]* s$' "$work/$name.errors" || true
  echo "$name: $(between "$(begun "$name")" "$(now)") s in all"
}
# When the first line that matches came.
at() { # name pattern
  grep -aE -m 1 "^[0-9.]+ $2" "$work/$1.lines" | cut -d ' ' -f 1
}
begun() { head -n 1 "$work/$1.lines"; }
# What the run itself says of long work: its seconds; a dash where it took less than two.
told() { # name what
  local seconds
  seconds=$(grep -aE "$2.*: .* in [0-9.]+ s$" "$work/$1.errors" | tail -n 1 | awk '{ print $(NF - 1) }')
  echo "${seconds:--}"
}
# The loss of a step as the log has it, in all its digits.
loss() { # name step
  grep "\"event\":\"step\",\"step\":$2," "$work/$1.json" | grep -o '"loss":[^,]*' | cut -d : -f 2
}
after() { # name: the loss after the last step, which its update has a part in
  grep -aoE 'after [0-9]+ steps: loss [0-9.]+' "$work/$1.lines" | tail -n 1
}
uncached() { # file...: what the kernel holds of them is forgotten, so that reading reads the disk
  python3 - "$@" << 'FORGET'
import os, sys
for path in sys.argv[1:]:
    file = os.open(path, os.O_RDONLY)
    os.fsync(file)
    os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(file)
FORGET
}
# Bytes and seconds of dd, past the kernel's cache: what one thread gets of the disk.
disk() { # flags of dd...
  local from
  from=$(now)
  dd bs=64M count="${DISK_BLOCKS:-64}" "$@" status=none && between "$from" "$(now)"
}

written=$(disk if=/dev/zero of="$work/zeros" oflag=direct conv=fsync) || written=0
probed=$(stat -c %s "$work/zeros" 2> /dev/null || echo 0)
rm -f "$work/zeros"

train whole --steps 3
train saved --steps 2 --save "$work/save"
checkpoint=$work/save/step-00000002
bytes=$(du -sb "$checkpoint" | cut -f 1)
read_in=$(
  uncached "$checkpoint"/*.safetensors
  disk if="$checkpoint/optimizer.safetensors" of=/dev/null iflag=direct
) || read_in=0
read_bytes=$(awk -v a="$probed" -v b="$(stat -c %s "$checkpoint/optimizer.safetensors")" 'BEGIN { print a < b ? a : b }')
uncached "$checkpoint"/*.safetensors
train resumed --steps 3 --resume "$checkpoint"

saving=$(between "$(at saved 'step 2 .*loss')" "$(at saved 'step 2 .*saved')")
resuming=$(between "$(begun resumed)" "$(at resumed 'step 3 .*loss')")
echo
grep -aE 'model  |memory  |one step  ' "$work/whole.lines" | cut -d ' ' -f 2- || true
echo
echo "| | seconds | of which the run tells | GB | GB/s |"
echo "|---|---:|---:|---:|---:|"
gigabytes=$(awk -v b="$bytes" 'BEGIN { printf "%.3g", b / 1e9 }')
for name in whole saved; do
  echo "| from initial values to the end of step 1 ($name) | $(between "$(begun $name)" "$(at $name 'step 1 .*loss')") | drawing $(told $name drawing) | | |"
done
echo "| saving | $saving | $(told saved saving) | $gigabytes | $(rate "$bytes" "$saving") |"
echo "| resuming, to the end of step 3 | $resuming | reading $(told resumed 'reading|resum') | $gigabytes | $(rate "$bytes" "$(told resumed 'reading|resum')") |"
echo "| the disk by dd: writing | $written | | $(awk -v b="$probed" 'BEGIN { printf "%.3g", b / 1e9 }') | $(rate "$probed" "$written") |"
echo "| the disk by dd: reading | $read_in | | $(awk -v b="$read_bytes" 'BEGIN { printf "%.3g", b / 1e9 }') | $(rate "$read_bytes" "$read_in") |"
echo
failed=0
same() { # what one other
  if [[ $2 && $2 == "$3" ]]; then
    echo "ok      $1: $2"
  else
    echo "FAILED  $1: $2 without a pause, $3"
    failed=1
  fi
}
for step in 1 2; do
  same "loss of step $step in two runs" "$(loss whole $step)" "$(loss saved $step)"
done
same "loss of step 3, behind a pause" "$(loss whole 3)" "$(loss resumed 3)"
same "what update 3 has made" "$(after whole)" "$(after resumed)"
[ "$failed" = 0 ]
