"""norms.py LOG GROUP...: in every step the norm of all gradients is that of the norms of these groups."""
import json
import math
import sys

steps = [e for e in map(json.loads, open(sys.argv[1])) if e["event"] == "step"]
assert steps
for step in steps:
    norms = {name.split(".", 1)[1]: value for name, value in step["outputs"].items() if name.startswith("grad_norm.")}
    assert sorted(norms) == sorted(sys.argv[2:]), norms
    assert min(norms.values()) > 0
    total = math.sqrt(sum(value * value for value in norms.values()))
    assert abs(total - step["grad_norm"]) <= 1e-6 * total, (total, step["grad_norm"])
