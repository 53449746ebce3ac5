"""check-parts.py LOG.jsonl PART...: of what routers learn from tokens' losses exactly these parts are told, and with the
others they are the loss of every step, with s = 1."""
import json
import sys

steps = [line for line in map(json.loads, open(sys.argv[1])) if line["event"] == "step"]
assert steps
for step in steps:
    told = step["outputs"]
    parts = {name for name in ("advantage", "loss_aware") if name in told}
    assert parts == set(sys.argv[2:]), parts
    total = told["ce"] + told["aux"] + 0.01 * told["ponder"] + sum(told[name] for name in parts)
    assert abs(step["loss"] - total) < 1e-5, (step["loss"], total)
    assert "loss_aware" not in parts or told["loss_aware"] > 0, told
