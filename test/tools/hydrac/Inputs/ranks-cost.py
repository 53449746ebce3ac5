"""Which links an axis of a mesh has, by the time of its exchanges."""
import json

NODE, NETWORK = 266e9, 45e9


def exchanges(name):
    return {(e["kind"], e["axis"]): e for e in json.load(open(name))["step"]["exchanges"]}


def rate(exchange):
    return 1e6 * exchange["wire_bytes"] / exchange["microseconds"]


eight, inside, across = exchanges("eight.json"), exchanges("inside.json"), exchanges("across.json")
for kind in ("all_gather", "all_to_all"):
    one = eight[kind, "data"]
    assert 0.7 * NODE < rate(one) <= NODE, rate(one)
    # As many ranks along an axis send as many bytes, whatever other axes there are.
    for other in (inside, across):
        assert abs(other[kind, "data"]["wire_bytes"] / one["wire_bytes"] - 1) < 1e-2
    assert 0.7 * NODE < rate(inside[kind, "data"]) <= NODE
    assert 0.7 * NETWORK < rate(across[kind, "data"]) <= NETWORK
assert rate(inside["all_gather", "replica"]) <= NETWORK
assert 0.7 * NODE < rate(across["all_gather", "replica"]) <= NODE
step, alone = json.load(open("eight.json"))["step"], json.load(open("one.json"))["step"]
assert abs(step["microseconds"] - step["compute_microseconds"] - step["exposed_microseconds"]) < 1e-6
assert alone["exchanges"] == [] and alone["microseconds"] == alone["compute_microseconds"]
print("the rule of nodes holds")
