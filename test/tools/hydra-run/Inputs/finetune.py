"""What fine-tuning leaves in files.

Usage: finetune.py TRAINED BASE MERGED         base tensors are the same, and merged ones W + alpha / R B A
       finetune.py --split TRAINED ADAPTER     writes the adapters of a file alone
       finetune.py --frozen ALL SOME NONE      SOME has the values of ALL where it was trained, of NONE elsewhere
"""
import array
import fnmatch
import json
import pathlib
import struct
import sys


def read(path):
    """{name: (shape, bytes)}, metadata; all of it f32"""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    metadata = header.pop("__metadata__", {})
    return {name: (entry["shape"],
                   data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
            for name, entry in header.items()}, metadata


def write(path, tensors, metadata):
    header, at = {"__metadata__": metadata}, 0
    for name, (shape, data) in tensors.items():
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text +
                                   b"".join(data for _, data in tensors.values()))


def values(tensor):
    return array.array("f", tensor[1])


def check(trained, base, merged):
    (ours, metadata), (theirs, _), (sums, _) = map(read, (trained, base, merged))
    lora = json.loads(metadata["lora"])
    scale = lora["alpha"] / lora["rank"]
    assert set(sums) == set(theirs)
    adapted = 0
    for name, tensor in theirs.items():
        assert ours[name] == tensor, name
        a, b = ours.get(name + ".lora_a"), ours.get(name + ".lora_b")
        if not a:
            assert sums[name] == tensor, name
            continue
        adapted += 1
        assert any(values(b)), name  # it has learned
        rows, columns = tensor[0]
        w, a, b, found = values(tensor), values(a), values(b), values(sums[name])
        for n in range(0, rows, 7):
            for k in range(0, columns, 5):
                low = sum(b[n * lora["rank"] + r] * a[r * columns + k] for r in range(lora["rank"]))
                expected = w[n * columns + k] + scale * low
                assert abs(found[n * columns + k] - expected) < 1e-7 * (1 + abs(expected)), (name, n, k)
    assert adapted == 6 and len(ours) == len(theirs) + 2 * adapted


def split(trained, adapter):
    tensors, metadata = read(trained)
    scale = json.loads(metadata["lora"])  # said as Python writes it
    metadata["lora"] = json.dumps({"rank": scale["rank"], "alpha": int(scale["alpha"])})
    write(adapter, {name: tensor for name, tensor in tensors.items() if ".lora_" in name}, metadata)


def frozen(everything, some, none):
    (whole, _), (part, _), (start, _) = map(read, (everything, some, none))
    for name, tensor in part.items():
        still = name == "tok_emb" or fnmatch.fnmatch(name, "layers.*.w?")
        assert tensor == (start if still else whole)[name], name
        assert tensor != (whole if still else start)[name], name


if sys.argv[1] == "--split":
    split(*sys.argv[2:])
elif sys.argv[1] == "--frozen":
    frozen(*sys.argv[2:])
else:
    check(*sys.argv[1:])
