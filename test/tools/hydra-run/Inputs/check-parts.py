"""check-parts.py LOG.jsonl PART[=0]...: of what routers learn from tokens' losses exactly these parts are told, which are
0 where that is said and else in no step; with the others they are the loss of every step, with s = 1."""
import json
import sys

steps = [line for line in map(json.loads, open(sys.argv[1])) if line["event"] == "step"]
wanted = {part.removesuffix("=0"): not part.endswith("=0") for part in sys.argv[2:]}
assert steps
for step in steps:
    told = step["outputs"]
    parts = {name: told[name] for name in ("advantage", "loss_aware") if name in told}
    assert {name: value != 0 for name, value in parts.items()} == wanted, parts
    total = told["ce"] + told["aux"] + 0.01 * told["ponder"] + sum(parts.values())
    assert abs(step["loss"] - total) < 1e-5, (step["loss"], total)
