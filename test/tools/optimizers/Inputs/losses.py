"""losses.py LIMIT LOG LOG: the last held-out losses of two logs differ by at most LIMIT, and both are below the first
loss of training by more than 1."""
import json
import sys

ends = []
for path in sys.argv[2:]:
    events = [json.loads(line) for line in open(path)]
    first = next(e["loss"] for e in events if e["event"] == "step")
    last = [e["loss_nats"] for e in events if e["event"] == "eval"][-1]
    assert last < first - 1, (path, first, last)
    ends.append(last)
print(f"{ends[0]:.4f} and {ends[1]:.4f}")
assert abs(ends[0] - ends[1]) <= float(sys.argv[1]), ends
