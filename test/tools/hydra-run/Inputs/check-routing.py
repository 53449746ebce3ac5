"""check-routing.py LOG.jsonl TOLD.txt: the outputs of the first step against those that a program of the same numbers
prints. check-routing.py LOG.jsonl REPORT.json --report: the report against means of the log."""
import json
import math
import sys

lines = [json.loads(line) for line in open(sys.argv[1])]
steps = [line for line in lines if line["event"] == "step"]


def close(a, b):
    return math.isclose(a, b, rel_tol=2e-5, abs_tol=1e-6)


if sys.argv[-1] == "--report":
    report = json.load(open(sys.argv[2]))
    n = len(steps)
    mean = lambda values: sum(values) / n
    for b, block in enumerate(report["blocks"]):
        rows = [mean(s["outputs"]["rows"][b][r] for s in steps) for r in range(3)]
        depths = [mean(s["outputs"]["depths"][b][r] for s in steps) for r in range(3)]
        assert all(map(close, rows, block["rows_by_recursion"])) and all(map(close, depths, block["depths"]))
        assert close(block["rows"], sum(rows)) and block["total"] == 3 * 64 and close(sum(depths), 64)
        assert close(block["savings_percent"], 100 * (1 - sum(rows) / 192))
        assert close(block["mean_depth"], mean(s["outputs"]["mean_depth"][b][0] for s in steps))
        assert close(block["computed"], mean(s["outputs"]["computed"][b][0] for s in steps))
        assert close(block["mod_mean"], mean(s["outputs"]["mod_mean"][b][0] for s in steps))
    print("means: right")
    sys.exit()

told, name = {}, None
for line in open(sys.argv[2]).read().split("\n\n", 1)[1].splitlines():
    words = line.split()
    if line.startswith("  "):
        told[name].append([float(word) for word in words])
    elif words[1].startswith("["):
        name = words[0]
        told[name] = []
    else:
        told[words[0]] = float(words[1])
outputs = steps[0]["outputs"]
assert set(outputs) == set(told), (set(outputs), set(told))
flat = lambda x: [v for row in x for v in flat(row)] if isinstance(x, list) else [x]
for key in told:
    assert all(map(close, flat(outputs[key]), flat(told[key]))), (key, outputs[key], told[key])
print("first step: the same")
for step in steps:
    parts = step["outputs"]
    assert close(step["loss"], parts["ce"] + parts["aux"] + 0.01 * parts["ponder"]), step
print("losses: sums of their parts")
