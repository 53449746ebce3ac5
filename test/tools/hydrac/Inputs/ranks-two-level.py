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

# Of all bytes a rank sends (N - 1) / N, and of those of its piece the same with the number of nodes.
all_bytes = sent("one-level.json", "data") / ((RANKS - 1) / RANKS)
for name, node in (("two-level.json", NODE), ("of-four.json", RANKS // 16)):
    nodes = RANKS // node
    inside, across = (node - 1) / node * all_bytes, (nodes - 1) / nodes * all_bytes / node
    assert abs(sent(name, "data") / inside - 1) < 0.01, (name, sent(name, "data"), inside)
    assert abs(sent(name, "data.node") / across - 1) < 0.01, (name, sent(name, "data.node"), across)
assert step("two-level.json") < step("of-four.json") < step("one-level.json")

# Of what is cut over all ranks, each sends its own piece to the same rank of other nodes, and inside of its node what that has
# then: of gathers 7 64ths and 7 eighths, where over one axis 63 64ths go over the network. Where every node has all of it,
# gathers stay inside.
def kind(name, which, axis):
    return sum(e["wire_bytes"] for e in report(name)["step"]["exchanges"] if (e["kind"], e["axis"]) == (which, axis))


for shard in ("zero1", "fsdp"):
    one, levels, inside = shard + ".json", shard + "-levels.json", shard + "-inside.json"
    assert report(one)["mesh"] == "data:64"
    assert report(levels)["mesh"] == "data.node:8,data:8"
    for which in ("all_gather", "all_to_all"):
        all_bytes = kind(one, which, "data") / ((RANKS - 1) / RANKS)
        nodes = RANKS // NODE
        across, within = (nodes - 1) / nodes * all_bytes / NODE, (NODE - 1) / NODE * all_bytes
        assert abs(kind(levels, which, "data.node") / across - 1) < 0.05, (shard, which, kind(levels, which, "data.node"), across)
        assert abs(kind(levels, which, "data") / within - 1) < 0.05, (shard, which, kind(levels, which, "data"), within)
    assert kind(inside, "all_gather", "data") > 0
    assert step(levels) < step(one)
print("pieces of sums cross the network")
