"""Holds the memory of a plan that trains adapters against one that trains everything.

Usage: finetune-memory.py PLAN.json ALL.json SMALL.json
       the plan (hydra-inspect --json), and both memory reports
"""
import json
import math
import sys

plan, everything, small = (json.load(open(path)) for path in sys.argv[1:])

elements = lambda variable: math.prod(variable["shape"])
trained = [p for p in plan["parameters"] if not p.get("frozen")]
assert len(trained) == 8 and all(".lora_" in p["name"] for p in trained), trained
count = 2 * (4 * (64 + 64) + 4 * (64 + 32))
assert sum(map(elements, trained)) == count

# States are the moments of what is trained, two of each, and the count of updates.
names = {p["name"] for p in trained}
moments = [s for s in plan["states"] if s["role"] == "moment"]
assert len(plan["states"]) == len(moments) + 1 and len(moments) == 2 * len(trained)
assert all(m["owner"] in names for m in moments)

assert small["persistent"]["opt_state"] == 2 * 4 * count + 4, small["persistent"]
assert small["persistent"]["param"] == everything["persistent"]["param"] + 4 * count
# No gradient is as large as those of frozen matrices were: what remains are those of values.
train = next(p for p in small["programs"] if p["name"] == "train")
gradients = [b["bytes"] for b in train["largest"] if b["category"] == "grad"]
before = next(p for p in everything["programs"] if p["name"] == "train")
assert train["peak_bytes"] < 0.7 * before["peak_bytes"], (train["peak_bytes"], before["peak_bytes"])
assert max(gradients, default=0) < 64 * 192 * 4, gradients
