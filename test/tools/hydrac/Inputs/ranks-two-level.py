"""What two levels save of the network, by the bytes and times of exchanges."""
import json

NODE, RANKS = 8, 64


def report(name):
    return json.load(open(name))


def sent(name, axis):
    """Bytes of the sums of gradients; a few numbers beside them are exchanged whole."""
    return sum(e["wire_bytes"] for e in report(name)["step"]["exchanges"] if e["axis"] == axis)


def step(name):
    return report(name)["step"]["microseconds"]


assert report("two-level.json") == report("by-hand.json")
assert report("two-level.json")["mesh"] == "data.node:8,data:8"
assert report("one-level.json")["mesh"] == "data:64"
assert report("of-four.json")["mesh"] == "data.node:16,data:4"
assert report("cut.json")["mesh"] == "data:64"
assert report("cut-inside.json")["mesh"] == "data.node:8,data:8"

# Of all bytes a rank sends (N - 1) / N, and of those of its piece the same with the number of nodes.
all_bytes = sent("one-level.json", "data") / ((RANKS - 1) / RANKS)
for name, node in (("two-level.json", NODE), ("of-four.json", RANKS // 16)):
    nodes = RANKS // node
    inside, across = (node - 1) / node * all_bytes, (nodes - 1) / nodes * all_bytes / node
    assert abs(sent(name, "data") / inside - 1) < 0.01, (name, sent(name, "data"), inside)
    assert abs(sent(name, "data.node") / across - 1) < 0.01, (name, sent(name, "data.node"), across)
assert step("two-level.json") < step("of-four.json") < step("one-level.json")
assert step("cut-inside.json") < step("cut.json")
print("pieces of sums cross the network")
