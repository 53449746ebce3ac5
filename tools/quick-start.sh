#!/usr/bin/env bash
# From nothing to generated text: installs what is missing, builds, compiles a small byte-level model, trains
# it on Shakespeare's plays, shows how the loss falls, and lets it write.
# Usage: tools/quick-start.sh [STEPS]    default: 1000, some minutes on two cores
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

steps=${1:-1000}
bin=build/dev/bin
run=build/quick-start

show() {
  echo
  echo "\$ $*"
  "$@"
}

tools/build.sh dev hydrac hydra-run
mkdir -p "$run"
show "$bin/hydrac" models/llama.mlir --preset=bytes --batch=16 --seq=128 \
  --schedule=cosine --lr=2e-3 --min-lr=1e-4 --warmup=50 --clip=1 -o "$run/plan.fb"
rm -rf "$run/checkpoints"
show "$bin/hydra-run" "$run/plan.fb" --data data/tinyshakespeare.txt --steps "$steps" \
  --eval-every 250 --log-every 50 --save "$run/checkpoints" --log "$run/log.jsonl" --plot
show "$bin/hydra-run" "$run/plan.fb" --resume "$run/checkpoints" \
  --generate "ROMEO:" --tokens 400 --temperature 0.8 --seed 1
