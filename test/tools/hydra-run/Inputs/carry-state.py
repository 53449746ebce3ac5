"""TTT-Linear in one call and in several: carry-state.py HYDRA-RUN FOLDER; the plans lie in the folder.

begin.fb gives the state before the first token; whole, long, short and one.fb read 48, 32, 16 tokens and one;
logits.fb scores 48 tokens without a state, online.fb (b0 = 1) six.
"""
import array
import json
import os
import struct
import subprocess
import sys

program, folder = sys.argv[1:]
B, V = 2, 97
tokens = [[(i * i * 7 + 3 * i + b * 11) % V for i in range(48)] for b in range(B)]


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
    command = [program, path(plan + ".fb"), "--seed", "3", "--outputs", path("out")]
    if inputs:
        write("in", inputs)
        command += ["--inputs", path("in")]
    subprocess.run(command, check=True, capture_output=True)
    return read("out")


def ids(first, count, rows=tokens):
    values = array.array("i", [t for row in rows for t in row[first : first + count]])
    return ("I32", [B, count], values.tobytes())


def go_on(plan, first, count, state, rows=tokens):
    position = ("F32", [1], struct.pack("<f", first))
    out = run(plan, {"tokens": ids(first, count, rows), "before": state, "position": position})
    scores = array.array("f", out["logits"][2])
    return [scores[b * count * V : (b + 1) * count * V] for b in range(B)], out["states"]


def expect(what, a, b, limit):
    largest = max(abs(x) for x in a)
    distance = max(abs(x - y) for x, y in zip(a, b)) / largest
    print(f"{what}: {distance:.1e}")
    if len(a) != len(b) or not distance <= limit:
        sys.exit(f"{what}: {distance} is more than {limit}")


start = run("begin", None)["states"]
whole, end = go_on("whole", 0, 48, start)
first, middle = go_on("long", 0, 32, start)
second, end2 = go_on("short", 32, 16, middle)
for b in range(B):
    expect("48 tokens are 32 and 16", whole[b], first[b] + second[b], 1e-5)
expect("and leave the same weights", array.array("f", end[2]), array.array("f", end2[2]), 1e-5)
plain = array.array("f", run("logits", {"tokens": ids(0, 48)})["logits"][2])
expect("from the first weights it is the model", whole[0] + whole[1], plain, 0.0)

state, online = start, [array.array("f") for _ in range(B)]
for i in range(6):
    scores, state = go_on("one", i, 1, state)
    for b in range(B):
        online[b] += scores[b]
expected = array.array("f", run("online", {"tokens": ids(0, 6)})["logits"][2])
expect("token by token is chunks of one", online[0] + online[1], expected, 1e-5)

other = [tokens[0], tokens[1][::-1]]
alone, _ = go_on("whole", 0, 48, start, other)
expect("rows of a batch do not meet", whole[0], alone[0], 0.0)
late = [tokens[0][:40] + [5] * 8, tokens[1]]
changed, _ = go_on("whole", 0, 48, start, late)
expect("the future changes nothing", whole[0][: 40 * V], changed[0][: 40 * V], 0.0)
