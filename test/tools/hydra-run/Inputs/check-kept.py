# Counts which elements dropout.mlir keeps: as many as p says, in all rows and columns, and apart from one another.
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


def check(what, kept, count, p, deviations=4):
    sigma = math.sqrt(count * p * (1 - p))
    assert abs(kept - count * (1 - p)) <= deviations * sigma, (what, kept, count, p)


size = 1024
masks = {}
for name, p in (("w", 0.3), ("v", 0.5)):
    gradient = values("grad." + name)
    factor = 1 / (size * size * (1 - p))
    assert all(g == 0 or abs(g - factor) < 1e-5 * factor for g in gradient), name
    kept = masks[name] = [g != 0 for g in gradient]
    check(name, sum(kept), size * size, p)
    for i in range(size):  # of 2048 normal numbers the largest is below 6 deviations
        check((name, "row", i), sum(kept[i * size:(i + 1) * size]), size, p, 6)
        check((name, "column", i), sum(kept[i::size]), size, p, 6)
    beside = sum(a and b for a, b in zip(kept, kept[1:]))
    check((name, "beside"), beside, size * size - 1, 1 - (1 - p) ** 2, 7)  # pairs share elements
both = sum(a and b for a, b in zip(masks["w"], masks["v"]))
check("both", both, size * size, 1 - 0.7 * 0.5)
