"""Writes none, some and all.safetensors: how many scores are above zero. Usage: gate-inputs.py FOLDER"""
import array
import json
import os
import struct
import sys

B, S, D, F = 2, 96, 24, 64
state = 1


def numbers(count, scale=1.0):
    global state
    values = array.array("f")
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(scale * (state / 2**63 - 1))
    return values


x, up, down = numbers(B * S * D), numbers(F * D, 0.2), numbers(D * F, 0.2)
for name, score in (("none", -1.0), ("all", 1.0), ("some", None)):
    scores = numbers(B * S) if score is None else array.array("f", [score] * (B * S))
    tensors = {"x": ([B, S, D], x), "score": ([B, S], scores), "up": ([F, D], up), "down": ([D, F], down)}
    header, data = {}, b""
    for key, (shape, values) in tensors.items():
        header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
        data += values.tobytes()
    text = json.dumps(header).encode()
    with open(os.path.join(sys.argv[1], name + ".safetensors"), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)
