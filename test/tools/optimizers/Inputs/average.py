"""average.py FOLDER ema DECAY | swa FROM: what checkpoints of every step have as averages is, in float64, the average
of the parameters of all of them; FOLDER has the checkpoints of the steps 1, 2, ... Prints how many were compared.
average.py FILE CHECKPOINT: the parameters of FILE are the averages of CHECKPOINT, bit for bit."""
import json
import os
import struct
import sys


def read(path):
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, info in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and info["dtype"] == "F32":
            begin, end = (8 + size + at for at in info["data_offsets"])
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[begin:end])
    return tensors


if len(sys.argv) == 3:
    averages = read(os.path.join(sys.argv[2], "optimizer.safetensors"))
    for name, values in read(sys.argv[1]).items():
        assert values == averages[name + ".average"], name
    print("equal")
    sys.exit()

folder, kind, number = sys.argv[1], sys.argv[2], float(sys.argv[3])
means, compared = {}, 0
for t, step in enumerate(sorted(os.listdir(folder)), 1):
    assert step == f"step-{t:08}", step
    kept = read(os.path.join(folder, step, "optimizer.safetensors"))
    for name, values in read(os.path.join(folder, step, "model.safetensors")).items():
        if name + ".average" not in kept:
            continue
        share = max(1 - number, 1 / t) if kind == "ema" else 1 / max(1, t - number + 1)
        mean = means.get(name, [0.0] * len(values))
        means[name] = mean = [m + share * (v - m) for m, v in zip(mean, values)]
        scale = max(abs(v) for v in mean)
        for m, v in zip(mean, kept[name + ".average"]):
            assert abs(m - v) <= 4e-7 * t * scale, (step, name, m, v)
            compared += 1
assert compared > 1000
print("compared", compared)
