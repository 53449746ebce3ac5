"""Inputs of scales.mlir, and what has to come out. Usage: scales.py write FILE KIND | check OUT REFERENCE KIND"""
import json
import math
import struct
import sys

AMAX = [0.0, 1e-45, 1e-38, 2.0**-120, 1.0, 447.9, 448.0, 448.1, 57344.0, 57345.0, 3.4e38, math.inf]
state = 1


def numbers(count):
    global state
    values = []
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(state / 2**63 - 1)
    return values


def write(path, kind):
    x, w = numbers(40), numbers(24)
    x[3], x[9] = 0.0, 1e-6  # below what e5m2 has beside the largest
    if kind == "zero":
        x = [0.0] * 40
    if kind == "nan":
        x[17] = math.nan
    if kind == "inf":
        x[17] = -math.inf
    finite = [abs(v) for v in x if not math.isnan(v)]
    tensors = {"amax": ([12], AMAX), "x": ([5, 8], x), "w": ([3, 8], w), "ax": ([], [max(finite)]),
               "aw": ([], [max(abs(v) for v in w)])}
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__":
            begin, end = (8 + size + at for at in entry["data_offsets"])
            width = {"F32": ("f", 4), "F64": ("d", 8)}[entry["dtype"]]
            tensors[name] = struct.unpack(f"<{(end - begin) // width[1]}{width[0]}", data[begin:end])
    return tensors


def scale(amax, largest):
    if math.isinf(amax):
        return math.inf
    exponent = -100
    while amax / 2.0**exponent > largest:
        exponent += 1
    return 2.0**exponent


def check(out, reference, kind):
    ours, theirs = read(out), read(reference)
    for name, largest in (("s3", 448), ("s2", 57344)):
        wanted = tuple(scale(struct.unpack("<f", struct.pack("<f", v))[0], largest) for v in AMAX)
        assert ours[name] == theirs[name] == wanted, (name, ours[name], theirs[name], wanted)
    for i, (a, b) in enumerate(zip(ours["y"], theirs["y"])):
        if kind == "inf" or kind == "nan" and i // 3 == 2:
            assert not math.isfinite(a) and not math.isfinite(b), (i, a, b)
        else:
            assert abs(a - b) <= 1e-6 * (1 + abs(b)), (i, a, b)
    assert (max(map(abs, ours["y"])) == 0.0) == (kind == "zero"), ours["y"]


{"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
