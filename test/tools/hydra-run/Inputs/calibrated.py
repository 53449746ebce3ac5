"""What hydra-run --calibrate wrote beside the description that it began with; or two predicted schedules of a plan."""
import json
import sys


def description():
    mine, base = (json.load(open(path)) for path in sys.argv[1:3])
    measured = mine.pop("measured")
    base.pop("measured", None)
    assert list(mine.items()) == list(base.items())
    assert 0 <= measured["exclusive"] <= 1 and measured["run_microseconds"] >= 0
    steps = measured["steps"]
    assert {"matmul.f32", "norm", "optimizer", "attention.f32", "attention_grad.f32"} <= set(steps), set(steps)
    for kind, rows in steps.items():
        sizes = 4 if kind.startswith("matmul.") else 2
        assert all(len(row) == sizes + 2 and min(row) > 0 for row in rows), kind
        assert len({tuple(row[:sizes]) for row in rows}) == len(rows), kind
    print("as before but for what was measured")


def schedules():
    limits, predicted = (json.load(open(path))["schedule"] for path in sys.argv[2:4])
    assert predicted["measured"]
    differ = 0
    for a, b in zip(limits["programs"], predicted["programs"], strict=True):
        assert a["name"] == b["name"] and len(a["steps"]) == len(b["steps"])
        for x, y in zip(a["steps"], b["steps"]):
            for field in ("place", "stream", "name", "class", "path", "limit_microseconds"):
                assert x.get(field) == y.get(field), (x, y)
            assert y["begin"] <= y["end"]
            differ += x["alone_microseconds"] != y["alone_microseconds"]
        assert b["microseconds"] >= max(step["end"] for step in b["steps"])
    assert differ > 0
    print("the same steps at the same limits")


schedules() if sys.argv[1] == "--schedules" else description()
