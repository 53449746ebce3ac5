"""check-trace.py SUMMARY.json TRACE.json...: sums of hydra-inspect trace --json against the events of its files."""
import collections
import json
import math
import sys

summary = json.load(open(sys.argv[1]))
for number, file in enumerate(sys.argv[2:]):
    events = [e for e in json.load(open(file))["traceEvents"] if e["ph"] == "X"]
    kinds = {"kernel", "gpu_memcpy", "gpu_memset"}
    if not any(e.get("cat") in kinds for e in events):
        kinds = {"cpu_op"}
    names, classes = collections.Counter(), collections.Counter()
    for e in events:
        if e.get("cat") in kinds:
            names[e["name"]] += e["dur"]
            classes[e["args"]["class"]] += e["dur"]
    total = sum(names.values())
    assert math.isclose(summary["traces"][number]["microseconds"], total)
    for key, sums in (("names", names), ("classes", classes)):
        found = {one["name"]: one["traces"][number] for one in summary[key]}
        assert {n for n, s in found.items() if s["calls"] > 0} == set(sums), key
        assert all(math.isclose(found[n]["microseconds"], s) for n, s in sums.items()), key
        assert math.isclose(sum(s["percent"] for s in found.values()), 100), key
if len(sys.argv) > 3:
    for one in summary["names"] + summary["classes"]:
        a, b = (t["microseconds"] for t in one["traces"])
        assert math.isclose(one["delta_microseconds"], b - a, abs_tol=1e-9)
        assert one["delta_percent"] is None if a == 0 else math.isclose(one["delta_percent"], 100 * (b - a) / a, abs_tol=1e-6)
print("sums: passed")
