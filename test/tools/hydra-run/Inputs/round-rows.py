"""Rounds rows of matrices to 127 steps of a scale each, in f32 as runtime/support/Int8Rows.h does, and writes the
numbers that these stand for: round-rows.py IN OUT NAME... leaves tensors of these names as they are."""
import json
import struct
import sys
from array import array


def f32(x):
    return struct.unpack("<f", struct.pack("<f", x))[0]


def rounded(row):
    scale = f32(max(map(abs, row)) / 127.0)
    return [f32(round(f32(x / scale)) * scale) for x in row] if scale else row


source, target, *kept = sys.argv[1:]
data = open(source, "rb").read()
size = struct.unpack("<Q", data[:8])[0]
header, body = json.loads(data[8 : 8 + size]), bytearray(data[8 + size :])
for name, tensor in header.items():
    if name == "__metadata__" or name in kept or len(tensor["shape"]) != 2:
        continue
    assert tensor["dtype"] == "F32", name
    begin, end = tensor["data_offsets"]
    numbers, columns = array("f", bytes(body[begin:end])), tensor["shape"][1]
    for i in range(0, len(numbers), columns):
        numbers[i : i + columns] = array("f", rounded(numbers[i : i + columns].tolist()))
    body[begin:end] = numbers.tobytes()
open(target, "wb").write(data[: 8 + size] + bytes(body))
