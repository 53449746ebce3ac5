"""check-profile.py PROFILE.json MEMORY.json TIMELINE.json: what the sections of a profile say, against each other and
against what the compiler says of the memory of the plan."""
import json
import math
import sys

profile, memory, timeline = (json.load(open(file)) for file in sys.argv[1:4])


def close(a, b, what):
    assert math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-3), f"{what}: {a} and {b}"


total = sum(one["microseconds"] for one in profile["classes"])

# Parts of a step: one after the other on a CPU, so that they are the step.
parts = {one["name"]: one for one in profile["step"]["parts"]}
assert list(parts) == ["data", "forward", "loss", "backward", "clip", "optimizer", "between", "step"], list(parts)
close(parts["step"]["mean_ms"] * 1e3, profile["step_microseconds"], "the step")
close(sum(one["mean_ms"] for name, one in parts.items() if name != "step"), parts["step"]["mean_ms"], "all parts")
close(sum(one["percent"] for name, one in parts.items() if name != "step"), 100, "percent of all parts")
for one in profile["phases"]:
    close(parts[one["name"]]["mean_ms"] * 1e3, one["microseconds"], one["name"])
for name, one in parts.items():
    if name != "between":
        assert one["min_ms"] <= one["p50_ms"] <= one["p99_ms"] and one["deviation_ms"] >= 0, one
        assert one["min_ms"] <= one["mean_ms"] * (1 + 1e-9) and one["mean_ms"] <= one["p99_ms"] * (1 + 1e-9), one

# Operations by time.
ranking = profile["ranking"]
close(sum(one["microseconds"] for one in ranking), total, "operations")
close(sum(one["percent"] for one in ranking), 100, "percent of operations")
close(sum(one["calls"] for one in ranking), sum(one["calls"] for one in profile["classes"]), "calls")
assert [one["rank"] for one in ranking] == list(range(1, len(ranking) + 1))
assert all(a["microseconds"] >= b["microseconds"] for a, b in zip(ranking, ranking[1:]))
assert all(one["host_microseconds"] == one["microseconds"] for one in ranking), "a CPU is its own host"

# The three that take most, each in one part of the model.
hotspots = profile["hotspots"]
assert len(hotspots) == 3 and all(a["microseconds"] >= b["microseconds"] for a, b in zip(hotspots, hotspots[1:])), hotspots
for one in hotspots:
    close(one["percent"], 100 * one["microseconds"] / total, "a hotspot's share")
    assert one["bound"] in ("launch", "compute", "memory"), one
    assert one["microseconds"] <= next(o["microseconds"] for o in ranking if o["name"] == one["name"]) * (1 + 1e-9), one

# Operations by bytes: what comes to life in the programs of a step.
trains = {"train", "accumulate", "count", "apply"}
made = sum(e["bytes"] for p in timeline if p["program"] in trains for e in p["events"] if e["bytes"] > 0)
allocations = profile["allocations"]
assert sum(one["bytes"] for one in allocations) == made, "bytes of all values"
assert all(a["bytes"] >= b["bytes"] for a, b in zip(allocations, allocations[1:]))

# Modules: a part has what all paths in it have.
tree = {one["path"]: one for one in profile["module_tree"]}


def seconds(one):
    return one["forward_microseconds"] + one["backward_microseconds"] + one["other_microseconds"]


close(seconds(tree[""]), total, "the whole model")
for path, one in tree.items():
    inside = [m["microseconds"] for m in profile["modules"]
              if not path or m["name"] == path or m["name"].startswith(path + ".")]
    close(seconds(one), sum(inside), path)
    assert one["first_microseconds"] >= 0
assert tree[""]["first_microseconds"] > 0
left = 0
for program in memory["programs"]:
    if program["name"] not in trains or program["name"] == "apply":
        continue
    stages = {one["stage"]: one for one in program["stages"]}
    ends = [stages[name] for name in ("forward", "loss") if name in stages]
    if ends:
        left += max(ends, key=lambda one: one["block"])["live_bytes"] - stages["batch"]["live_bytes"]
inputs = sum(p["stages"][1]["change_bytes"] for p in memory["programs"] if p["name"] in trains)
assert left <= tree[""]["memory_delta_bytes"] <= left + inputs, (left, tree[""]["memory_delta_bytes"], inputs)

# Copies: all that the class has, and nothing else.
copies = profile["copies"]
kind = {one["name"]: one for one in profile["classes"]}.get("copy_cast", {"calls": 0, "microseconds": 0, "bytes": 0})
for key in ("calls", "microseconds", "bytes"):
    close(sum(one[key] for one in copies["copies"]), kind[key], key)
    close(copies["avoidable"][key] + copies["needed"][key], kind[key], key)
for one in copies["copies"]:
    assert one["why"] not in ("", "-") and one["to"] and one["pass"] and one["module"], one
    assert one["why"] != "nothing reads it", one

# Advice: nothing below a fiftieth; operations have their share of the step.
shares = {one["name"]: 100 * one["microseconds"] / profile["step_microseconds"] for one in ranking[:10]}
for one in profile["advice"]:
    assert one["percent"] > 2 and one["reason"] and one["tag"] in ("OPTIMIZED", "CHECK", "INVESTIGATE", "TIP"), one
    if one["subject"] in shares:
        close(one["percent"], shares.pop(one["subject"]), one["subject"])
assert all(share <= 2 for share in shares.values()), shares
print("right:", parts["step"]["mean_ms"], "ms")
