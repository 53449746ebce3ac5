# killed-run.sh PLAN DIR FLAG...: a run in DIR that is killed, and then makes three steps more than its last checkpoint has.
set -euo pipefail
plan=$1 directory=$2
shift 2
timeout -s KILL 60 hydra-run "$plan" "$@" --steps 1000000 --save-every 3 --run "$directory" > /dev/null 2>&1 &
until [ "$(find "$directory/checkpoints" -name "step-*" 2> /dev/null | wc -l)" -ge 2 ]; do
  kill -0 $!
  sleep 0.01
done
pkill -KILL -P $! -x hydra-run
wait $! || true
newest=$(ls "$directory/checkpoints" | tail -n 1)
exec hydra-run --resume "$directory" --steps $((10#${newest#step-} + 3))
