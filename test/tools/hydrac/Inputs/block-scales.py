"""Inputs of block-scales.mlir, and what has to come out. Usage: block-scales.py write FILE | check FILE OUT..."""
import json
import math
import struct
import sys

ROWS, COLUMNS, K, BLOCK = 5, 130, 300, 128
state = 1


def number():
    global state
    state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
    return struct.unpack("<f", struct.pack("<f", state / 2**63 - 1))[0]


def matrix(rows):
    """Of magnitudes that differ from block to block."""
    return [[number() * 4.0**((l // BLOCK * 3 + i // BLOCK * 5 + i) % 7 - 3) for l in range(K)] for i in range(rows)]


def write(path):
    x, w = matrix(ROWS), matrix(COLUMNS)
    blocks = range(-(-K // BLOCK))
    part = lambda row, b: [abs(v) for v in row[b * BLOCK:(b + 1) * BLOCK]]
    ax = [max(part(row, b)) for b in blocks for row in x]
    aw = [max(v for row in w[p * BLOCK:(p + 1) * BLOCK] for v in part(row, b)) for p in range(2) for b in blocks]
    tensors = {"x": ([ROWS, K], sum(x, [])), "w": ([COLUMNS, K], sum(w, [])), "ax": ([len(blocks), ROWS], ax),
               "aw": ([2, len(blocks)], aw)}
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
    exponent = -100
    while amax / 2.0**exponent > largest:
        exponent += 1
    return 2.0**exponent


def rounded(v, mantissa, least):
    """To so many bits behind the point, ties to even; of a format whose smallest normal number is 2^least."""
    if v == 0.0:
        return 0.0
    step = 2.0**(max(math.frexp(v)[1] - 1, least) - mantissa)
    return round(v / step) * step


def check(inputs, *outputs):
    given = read(inputs)
    blocks = -(-K // BLOCK)
    at = lambda name, i, l: given[name][i * K + l]
    sx = lambda i, l: scale(given["ax"][l // BLOCK * ROWS + i], 57344)
    sw = lambda j, l: scale(given["aw"][j // BLOCK * blocks + l // BLOCK], 448)
    x = [[rounded(at("x", i, l) / sx(i, l), 2, -14) * sx(i, l) for l in range(K)] for i in range(ROWS)]
    w = [[rounded(at("w", j, l) / sw(j, l), 3, -6) * sw(j, l) for l in range(K)] for j in range(COLUMNS)]
    for path in outputs:
        out = read(path)
        for i in range(ROWS):
            for j in range(COLUMNS):
                terms = [a * b for a, b in zip(x[i], w[j])]
                limit = 2e-6 * sum(map(abs, terms))
                for name, place in (("y", i * COLUMNS + j), ("turned", j * ROWS + i), ("rowwise", i * COLUMNS + j)):
                    assert abs(out[name][place] - sum(terms)) <= limit, (path, name, i, j, out[name][place], sum(terms))


{"write": write, "check": check}[sys.argv[1]](*sys.argv[2:])
