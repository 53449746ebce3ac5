"""Rounds groups of 32 neighbours in rows of matrices to numbers of 4 bits times a scale each, in f32 as
runtime/support/Int4Groups.h does, and writes the numbers that these stand for: round-groups.py IN OUT NAME... leaves
tensors of these names as they are, and those whose rows have no whole groups."""
import json
import math
import struct
import sys
from array import array


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def by(scale, group):
    inverse, error, numbers = f32(1.0 / scale), 0.0, []
    for number in group:
        x = f32(number * inverse)
        integer = round(min(max(x, -8.0), 7.0))
        off = f32(x - integer)
        error = f32(error + f32(off * off))
        numbers.append(integer * scale)
    return error, numbers


def rounded(group):
    largest = max(map(abs, group))
    if not largest:
        return group
    least, most = f32(largest / 8.5), f32(largest / 6.0)
    fraction, exponent = math.frexp(least)
    best, bits = (math.inf, group), math.ceil(16 * fraction)
    while (scale := math.ldexp(bits, exponent - 4)) <= most:
        for one in scale, -scale:
            error, numbers = by(one, group)
            best = min(best, (f32(error * bits * bits), numbers), key=lambda pair: pair[0])
        bits += 1 if bits < 16 else 2
    return best[1]


source, target, *kept = sys.argv[1:]
data = open(source, "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8 : 8 + size]), bytearray(data[8 + size :])
for name, tensor in header.items():
    if name == "__metadata__" or name in kept or len(tensor["shape"]) != 2 or tensor["shape"][1] % 32:
        continue
    assert tensor["dtype"] == "F32", name
    begin, end = tensor["data_offsets"]
    numbers = array("f", bytes(body[begin:end]))
    for i in range(0, len(numbers), 32):
        numbers[i : i + 32] = array("f", rounded(numbers[i : i + 32].tolist()))
    body[begin:end] = numbers.tobytes()
open(target, "wb").write(data[: 8 + size] + bytes(body))
