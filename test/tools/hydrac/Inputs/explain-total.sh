#!/usr/bin/env bash
# Compares the predicted time of --explain with that of --cost-report. Usage: explain-total.sh MODELS
set -euo pipefail
for target in cpu h200; do
  for plan in "cs336 --preset=small --batch=4 --seq=128" "ttt --preset=bytes --batch=2 --seq=512" \
    "hydra --preset=bytes --batch=2 --seq=64"; do
    read -r model flags <<<"$plan"
    # shellcheck disable=SC2086
    report=$(hydrac "$1/$model.mlir" $flags --target=$target --cost-report |
      awk '/^program train/ { for (i = 2; i <= NF; ++i) if ($i == "ms") ms = $(i - 1); print ms }') # the prediction is last
    # shellcheck disable=SC2086
    explained=$(hydrac "$1/$model.mlir" $flags --target=$target --explain | awk '/^all passes/ { print $NF }')
    if [ -n "$report" ] && [ "$report" = "$explained" ]; then
      echo same
    else
      echo "$model on $target: --cost-report says $report ms, --explain $explained"
    fi
  done
done
