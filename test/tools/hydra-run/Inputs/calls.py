"""Calls of programs with safetensors in and out, and comparisons, for tests of what goes from call to call."""
import array
import json
import os
import struct
import subprocess
import sys

program, folder = sys.argv[1:]


def path(name):
    return os.path.join(folder, name)


def read(name):
    data = open(path(name), "rb").read()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for key, entry in json.loads(data[8 : 8 + size]).items():
        if key != "__metadata__":
            first, end = entry["data_offsets"]
            tensors[key] = (entry["dtype"], entry["shape"], data[8 + size + first : 8 + size + end])
    return tensors


def write(name, tensors):
    header, data = {}, b""
    for key, (dtype, shape, values) in tensors.items():
        header[key] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    with open(path(name), "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def run(plan, inputs):
    """The outputs of plan.fb for these inputs (None: it has none)."""
    command = [program, path(plan + ".fb"), "--seed", "3", "--outputs", path("out")]
    if inputs:
        write("in", inputs)
        command += ["--inputs", path("in")]
    subprocess.run(command, check=True, capture_output=True)
    return read("out")


def ids(rows, first, count):
    values = array.array("i", [t for row in rows for t in row[first : first + count]])
    return ("I32", [len(rows), count], values.tobytes())


def real(*values):
    return ("F32", [len(values)], array.array("f", values).tobytes())


def numbers(tensor):
    return array.array("f", tensor[2])


def rows_of(tensor):
    """The numbers of a [B, S, V] tensor, for each b."""
    values, size = numbers(tensor), tensor[1][1] * tensor[1][2]
    return [values[b * size : (b + 1) * size] for b in range(tensor[1][0])]


def expect(what, a, b, limit):
    largest = max(abs(x) for x in a)
    distance = max(abs(x - y) for x, y in zip(a, b)) / largest
    print(f"{what}: {distance:.1e}")
    if len(a) != len(b) or not distance <= limit:
        sys.exit(f"{what}: {distance} is more than {limit}")
