"""What goldens that are computed in plain Python share: see make-experts.py and make-gpt2.py."""
import array
import json
import math
import pathlib
import random
import struct

VOCABULARY, ROWS, LENGTH, PROMPT, NEW = 61, 2, 12, 4, 24


def write(path, tensors):
    """{name: (format, shape, numbers)}"""
    header, parts, at = {}, [], 0
    for name, (kind, shape, numbers) in tensors.items():
        data = array.array({"F32": "f", "I32": "i"}[kind], numbers).tobytes()
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def rounded(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def rows_of(weights):
    """Each tensor as a list of its rows."""
    rows = {}
    for name, (shape, numbers) in weights.items():
        width = shape[-1]
        rows[name] = [numbers[i:i + width] for i in range(0, len(numbers), width)]
    return rows


def dot(a, b):
    return math.fsum(x * y for x, y in zip(a, b))


def add(a, b):
    return [x + y for x, y in zip(a, b)]


def softmax(scores):
    most = max(scores)
    powers = [math.exp(s - most) for s in scores]
    return [p / math.fsum(powers) for p in powers]


def write_goldens(out, cases, make_weights, Model):
    """OUT/<case>/ gets config.json, model.safetensors with random weights under the names of transformers, and
    golden.safetensors as make-goldens.py has it, without gradients."""
    for number, (case, config) in enumerate(cases.items()):
        r = random.Random(number)
        weights = make_weights(config, r)
        model = Model(config, weights)
        tokens = [[r.randrange(VOCABULARY) for _ in range(LENGTH)] for _ in range(ROWS)]
        labels = [row[1:] + [-100] for row in tokens]
        logits = [model.logits(row) for row in tokens]
        losses = [-math.log(softmax(scores)[label]) for row, targets in zip(logits, labels)
                  for scores, label in zip(row, targets) if label >= 0]
        text = tokens[0][:PROMPT]
        for _ in range(NEW):
            scores = model.logits(text)
            text.append(max(range(VOCABULARY), key=scores[-1].__getitem__))
        scores = model.logits(text)
        folder = pathlib.Path(out) / case
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config, indent=2))
        write(folder / "model.safetensors", {name: ("F32", *tensor) for name, tensor in weights.items()})
        flat = lambda rows: [x for row in rows for x in row]
        write(folder / "golden.safetensors", {
            "tokens": ("I32", [ROWS, LENGTH], flat(tokens)), "labels": ("I32", [ROWS, LENGTH], flat(labels)),
            "logits": ("F32", [ROWS, LENGTH, VOCABULARY], flat(flat(logits))),
            "loss": ("F32", [], [math.fsum(losses) / len(losses)]),
            "greedy": ("I32", [len(text)], text), "long.tokens": ("I32", [1, len(text)], text),
            "long.logits": ("F32", [1, len(text), VOCABULARY], flat(scores))})
