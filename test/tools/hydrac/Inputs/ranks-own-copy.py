"""Of the time of exchanges, what a rank's own pieces take, with a description that has a rate for them and one that has none."""
import json

RATE = 1e12  # bytes/s, read plus written


def step(name):
    return json.load(open(f"{name}.json"))["step"]


def total(one, field):
    return sum(exchange[field] for exchange in one["exchanges"])


for ranks in (2, 4):
    slow, without = step(f"slow-{ranks}"), step(f"without-{ranks}")
    assert slow["wire_microseconds"] == without["wire_microseconds"]
    assert total(without, "own_copy_microseconds") == 0
    # All but norms and numbers of the step; each other rank gets as much as a rank keeps.
    all_pieces = 1e6 * 2 * slow["wire_bytes"] / (ranks - 1) / RATE
    own = total(slow, "own_copy_microseconds")
    assert 0.95 * all_pieces < own <= all_pieces, (own, all_pieces)
    assert total(slow, "alone_microseconds") >= own
    assert total(slow, "exposed_microseconds") >= own
    # By less than that where the step has waited for the exchange anyway.
    assert without["microseconds"] + 0.2 * own < slow["microseconds"] <= without["microseconds"] + own
for name in ("across", "tiny"):
    slow, without = step(f"slow-{name}"), step(f"without-{name}")
    assert total(slow, "own_copy_microseconds") == 0
    assert slow["microseconds"] == without["microseconds"]
print("own pieces are copied alone")
