"""What moved to the host is what left the arena, and what the transfers move; all of it is exposed or hidden."""
import json
import sys


def reports(path):
    text = open(path).read()
    memory, end = json.JSONDecoder().raw_decode(text)
    return memory, json.loads(text[end:])


memory, cost = reports(sys.argv[1])
plain, plain_cost = reports(sys.argv[2])
host = memory["host_bytes"]
assert plain["host_bytes"] == 0 and host > 0
assert plain["persistent_bytes"] - memory["persistent_bytes"] == host
assert plain["arena_bytes"] > memory["arena_bytes"] == memory["persistent_bytes"] + memory["transient_bytes"]
train = cost["programs"][0]
(exchange,) = train["predicted"]["exchanges"]
assert exchange["kind"] == "transfer" and exchange["axis"] == "host", exchange
assert exchange["wire_bytes"] == 2 * host == train["by_class"]["transfer"]["bytes"], (exchange, host)
predicted = train["predicted"]
assert 0 < predicted["exposed_microseconds"] <= predicted["wire_microseconds"], predicted
assert abs(predicted["microseconds"] - predicted["compute_microseconds"] - predicted["exposed_microseconds"]) < 0.1
assert not plain_cost["programs"][0]["predicted"]["exchanges"]
