"""reference.py BEFORE AFTER STEPS LR CLIP: updates quadratic.mlir's parameters in float64, as the papers and torch.optim
define the optimizers, and compares. BEFORE: safetensors of the initial parameters; AFTER: of those after STEPS steps.
CLIP bounds the norm of all gradients; 0: nothing does."""
import json
import math
import struct
import sys


class Tensor:
    """Matrices [blocks][rows][columns]; a vector is one row of one block."""

    def __init__(self, shape, values):
        self.shape = shape
        rank2 = ([1] * (3 - len(shape)) + list(shape))
        b, m, n = rank2
        self.blocks = [[[values[(k * m + i) * n + j] for j in range(n)] for i in range(m)] for k in range(b)]

    def flat(self):
        return [x for block in self.blocks for row in block for x in row]


def read(path):
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, info in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and info["dtype"] == "F32":
            begin, end = (8 + size + at for at in info["data_offsets"])
            tensors[name] = Tensor(info["shape"], struct.unpack(f"<{(end - begin) // 4}f", data[begin:end]))
    return tensors


def like(x, f, *others):
    return [[[f(*values) for values in zip(*rows)] for rows in zip(*blocks)] for blocks in zip(x, *others)]


def numbers(x):
    return [v for block in x for row in block for v in row]


def norm(x):
    return math.sqrt(sum(v * v for v in numbers(x)))


def rms(x):
    return norm(x) / math.sqrt(len(numbers(x)))


def matmul(a, b):
    return [[sum(x * y for x, y in zip(row, column)) for column in zip(*b)] for row in a]


def transpose(a):
    return [list(row) for row in zip(*a)]


def lion(p, g, state, t, lr, beta1=0.9, beta2=0.99, wd=0.1):
    m = state.setdefault("m", like(p, lambda v: 0.0))
    sign = like(m, lambda v, w: math.copysign(1.0, beta1 * v + (1 - beta1) * w), g)
    state["m"] = like(m, lambda v, w: beta2 * v + (1 - beta2) * w, g)
    return like(p, lambda v, s: v - lr * (s + wd * v), sign)


def muon(p, g, state, t, lr, momentum=0.95, nesterov=True, match=False, wd=0.1, steps=5):
    m = state["m"] = like(state.setdefault("m", like(p, lambda v: 0.0)),
                          lambda v, w: momentum * v + (1 - momentum) * w, g)
    u = like(m, lambda v, w: momentum * v + (1 - momentum) * w, g) if nesterov else m
    rows, columns = len(u[0]), len(u[0][0])
    x = u[0] if rows <= columns else transpose(u[0])
    size = max(norm(u), 1e-7)
    x = [[v / size for v in row] for row in x]
    for _ in range(steps):
        gram = matmul(x, transpose(x))
        square = matmul(gram, gram)
        inner = [[-4.7750 * a + 2.0315 * b for a, b in zip(r, s)] for r, s in zip(gram, square)]
        x = [[3.4445 * a + b for a, b in zip(r, s)] for r, s in zip(x, matmul(inner, x))]
    o = [x if rows <= columns else transpose(x)]
    pace = lr * (0.2 * math.sqrt(max(rows, columns)) if match else math.sqrt(max(1, rows / columns)))
    return like(p, lambda v, w: v * (1 - lr * wd) - pace * w, o)


def adafactor(p, g, state, t, lr, decay=0.8, eps1=2.0**-23, eps2=1e-3, threshold=1.0, wd=0.0, vector=False):
    share = t**-decay
    alpha = max(eps2, rms(p)) * min(lr, 1 / math.sqrt(t))
    lerp = lambda old, new: old + share * (new - old)
    square = like(g, lambda v: v * v)
    if vector:
        v = state["v"] = like(state.setdefault("v", like(p, lambda w: 0.0)), lerp, square)
    else:
        rows = [[sum(row) / len(row) for row in block] for block in square]
        columns = [[sum(column) / len(column) for column in zip(*block)] for block in square]
        for name, fresh in (("r", rows), ("c", columns)):
            old = state.setdefault(name, [[0.0] * len(block) for block in fresh])
            state[name] = [[lerp(*pair) for pair in zip(*both)] for both in zip(old, fresh)]
        v = [[[x * y / max(sum(r) / len(r), eps1) for y in c] for x in r] for r, c in zip(state["r"], state["c"])]
    u = like(g, lambda w, s: w / math.sqrt(max(s, eps1 * eps1)), v)
    pace = alpha / max(1.0, rms(u) / threshold)
    return like(p, lambda x, w: x * (1 - lr * wd) - pace * w, u)


OPTIMIZERS = {
    "lion": lion,
    "tall": muon,
    "wide": lambda p, g, s, t, lr: muon(p, g, s, t, 0.5 * lr, 0.8, False, True, 0.0, 3),
    "matrix": lambda p, g, s, t, lr: adafactor(p, g, s, t, lr, wd=0.05),
    "cube": lambda p, g, s, t, lr: adafactor(p, g, s, t, lr, 0.5, eps2=0.2, threshold=0.3),
    "vector": lambda p, g, s, t, lr: adafactor(p, g, s, t, lr, 0.5, eps2=0.2, threshold=0.3, vector=True),
}

before, after = read(sys.argv[1]), read(sys.argv[2])
steps, lr, clip = int(sys.argv[3]), float(sys.argv[4]), float(sys.argv[5])
values = {name: before[name + ".p"].blocks for name in OPTIMIZERS}
states = {name: {} for name in OPTIMIZERS}
for t in range(1, steps + 1):
    gradients = {name: like(p, lambda v, a: v + a, before[name + ".a"].blocks) for name, p in values.items()}
    total = math.sqrt(sum(norm(g)**2 for g in gradients.values()))
    scale = min(1.0, clip / (total + 1e-6)) if clip > 0 else 1.0
    for name, update in OPTIMIZERS.items():
        g = like(gradients[name], lambda v: v * scale)
        values[name] = update(values[name], g, states[name], t, lr)
worst = 0.0
for name, p in values.items():
    distance = max(abs(a - b) for a, b in zip(numbers(p), after[name + ".p"].flat()))
    moved = max(abs(a - b) for a, b in zip(before[name + ".p"].flat(), after[name + ".p"].flat()))
    print(f"{name}: moved {moved:.3g}, differs by {distance:.3g}")
    assert moved > 1e-3, name
    worst = max(worst, distance)
assert worst < 2e-5, worst
