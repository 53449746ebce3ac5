"""What --accum-exchange=last sends and holds, by the reports of two plans of two ranks and four micro-batches."""
import json


def report(name):
    return json.load(open(name))


def wire(name):
    return {e["kind"]: e["wire_bytes"] for e in report(name)["step"]["exchanges"]}


each, last = wire("each.json"), wire("last.json")
assert each["all_to_all"] == 4 * last["all_to_all"], (each, last)
# Beside parameters, losses and norms are gathered.
assert abs(each["all_gather"] / last["all_gather"] - 1) < 1e-2, (each, last)
gradients = [report(name)["persistent"]["grad"] for name in ("each-memory.json", "last-memory.json")]
assert gradients[1] == 2 * gradients[0], gradients
print("a quarter of the bytes of gradients, twice their memory")
