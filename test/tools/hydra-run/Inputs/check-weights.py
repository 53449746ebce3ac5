# Counts what dropout-weights.mlir keeps of keys and of weights.
import array
import json
import math
import struct
import sys

data = open(sys.argv[1], "rb").read()
length = struct.unpack("<Q", data[:8])[0]
header = json.loads(data[8:8 + length])


def values(name):
    begin, end = header[name]["data_offsets"]
    return array.array({"F32": "f", "F64": "d"}[header[name]["dtype"]], data[8 + length + begin:8 + length + end])


def check(what, found, expected, variance):
    assert abs(found - expected) <= 5 * math.sqrt(variance), (what, found, expected)


size, rows = 64, 8 * 64 * 4
count = rows * size
gradients = [values("grad." + name) for name in ("q", "k", "w1", "w2")]
assert all(math.isfinite(x) for gradient in gradients for x in gradient)

# All scores are 0: of n keys each has the weight 1 / n, and what is kept of weights is divided by 3 / 4.
seen = kept = 0
for row in range(rows):
    weights = [x * count for x in gradients[2][row * size:(row + 1) * size]]
    left = [x for x in weights if x != 0]
    keys = 1 / (0.75 * left[0])
    assert all(abs(x - left[0]) < 1e-5 * left[0] for x in left), row
    assert abs(keys - round(keys)) < 1e-3 and len(left) <= round(keys), (row, keys, len(left))
    seen += round(keys)
    kept += len(left)
check("keys", seen, count * 0.7, count * 0.7 * 0.3)
check("weights", kept, seen * 0.75, seen * 0.75 * 0.25)

# Of i + 1 keys a query keeps none with probability 0.9^(i + 1): then all weights are 0, else they sum to 1.
none = 0
for row in range(rows):
    weights = [x * count for x in gradients[3][row * size:(row + 1) * size]]
    i = row // 4 % size
    assert all(x == 0 for x in weights[i + 1:]), row
    total = sum(weights)
    assert total == 0 or abs(total - 1) < 1e-5, (row, total)
    none += total == 0
chances = [0.9 ** (i + 1) for i in range(size)]
check("queries without keys", none, 32 * sum(chances), 32 * sum(p * (1 - p) for p in chances))
