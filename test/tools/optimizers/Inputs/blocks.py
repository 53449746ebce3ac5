"""blocks.py BEFORE AFTER STEPS LR: updates blocks.mlir's parameters in float64 by AdamW with moments of 8 bits, and
compares. BEFORE: safetensors of the initial parameters; AFTER: of those after STEPS steps, with moments. What is rounded
may differ in a few elements, where f32 and float64 are on two sides of a limit; all others are compared closely."""
import json
import math
import struct
import sys

BITS, SMALLEST, LARGEST = 3, 2.0**-9, 448.0


def number(bits):
    """The number of f8E4M3FN that a byte is."""
    sign = -1.0 if bits & 128 else 1.0
    exponent, mantissa = bits >> 3 & 15, bits & 7
    return sign * (mantissa * SMALLEST if exponent == 0 else (1 + mantissa / 8) * 2.0**(exponent - 7))


def read(path):
    data = open(path, "rb").read()
    size, = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, info in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + at for at in info["data_offsets"])
        if info["dtype"] in ("F32", "F64"):
            letter, width = ("f", 4) if info["dtype"] == "F32" else ("d", 8)
            tensors[name] = list(struct.unpack(f"<{(end - begin) // width}{letter}", data[begin:end]))
        elif info["dtype"] == "F8_E4M3":
            tensors[name] = [number(byte) for byte in data[begin:end]]
    return tensors


def power(x):
    """The largest power of two that is no larger than x > 0."""
    return math.ldexp(1.0, math.frexp(x)[1] - 1)


def scale(largest):
    return max(1.0 / power(LARGEST / largest), 2.0**-100) if largest > 0 else 2.0**-100


def rounded(y, u):
    spacing = max(power(y) if y > 0 else 0.0, 2.0**-6) / 2**BITS
    below = math.floor(y / spacing)
    return (below + (1 if y / spacing - below > u else 0)) * spacing


def adamw8bit(p, g, state, t, lr, block, beta1, beta2, eps, wd):
    """m and r = sqrt(v) of every block, as numbers of 8 bits times scales."""
    m, r = state.setdefault("m", [0.0] * len(p)), state.setdefault("r", [0.0] * len(p))
    first = [beta1 * a + (1 - beta1) * b for a, b in zip(m, g)]
    root = [math.sqrt(beta2 * a * a + (1 - beta2) * b * b) for a, b in zip(r, g)]
    c1, c2 = 1 - beta1**t, 1 - beta2**t
    new = [x - lr * wd * x - lr * (a / c1) / (b / math.sqrt(c2) + eps) for x, a, b in zip(p, first, root)]
    for begin in range(0, len(p), block):
        end = begin + block
        sm, sr = scale(max(abs(a) for a in first[begin:end])), scale(max(root[begin:end]))
        for i in range(begin, end):
            u = ((2531 * (t % 4096) + 1597 * (i - begin)) % 4096 + 0.5) / 4096
            m[i] = math.copysign(rounded(abs(first[i]) / sm, u), first[i]) * sm
            r[i] = max(rounded(root[i] / sr, u), SMALLEST) * sr
    return new


def adamw(p, g, state, t, lr, beta1, beta2, eps, wd):
    m = state["m"] = [beta1 * a + (1 - beta1) * b for a, b in zip(state.get("m", [0.0] * len(p)), g)]
    v = state["v"] = [beta2 * a + (1 - beta2) * b * b for a, b in zip(state.get("v", [0.0] * len(p)), g)]
    c1, c2 = 1 - beta1**t, 1 - beta2**t
    return [x - lr * wd * x - lr * (a / c1) / (math.sqrt(b / c2) + eps) for x, a, b in zip(p, m, v)]


before, after = read(sys.argv[1]), read(sys.argv[2])
steps, lr = int(sys.argv[3]), float(sys.argv[4])
usual, slow = (0.9, 0.95, 1e-8, 0.1), (0.8, 0.999, 1e-6, 0.0)
blocks = {"even": (256, 1.0, usual), "odd": (169, 1.0, usual), "rows": (134, 0.5, slow), "wide": (256, 1.0, usual),
          "few": (0, 1.0, usual)}
for name, (block, rate, settings) in blocks.items():
    p, a, state = before[name + ".p"], before[name + ".a"], {}
    for t in range(1, steps + 1):
        g = [(math.exp(4 * y) if name == "wide" else 1.0) * (x + y) for x, y in zip(p, a)]
        if block:
            p = adamw8bit(p, g, state, t, rate * lr, block, *settings)
        else:
            p = adamw(p, g, state, t, rate * lr, *settings)
    differ = [abs(x - y) > 2e-5 for x, y in zip(p, after[name + ".p"])]
    if block:
        for kind, kept in (("m8", "m"), ("r8", "r")):
            scales = after[f"{name}.p.{kind}_scale"]
            assert len(scales) == len(p) // block, (name, len(scales))
            found = [q * scales[i // block] for i, q in enumerate(after[f"{name}.p.{kind}"])]
            assert all(math.frexp(s)[0] == 0.5 for s in scales), name
            assert kind == "m8" or all(q > 0 for q in found), name
            # Within a block, relative to what it should be; in the subnormal range to the smallest number.
            differ = [was or abs(x - y) > max(1e-4 * abs(y), scales[i // block] * 1e-3)
                      for i, (was, x, y) in enumerate(zip(differ, found, state[kept]))]
    farthest = max(abs(x - y) for x, y in zip(p, after[name + ".p"]))
    moved = max(abs(x - y) for x, y in zip(before[name + ".p"], after[name + ".p"]))
    print(f"{name}: moved {moved:.3g}, {sum(differ)} of {len(p)} differ, by at most {farthest:.3g}")
    assert moved > steps * rate * lr / 4, name
    assert sum(differ) <= len(p) // 200, name
    assert farthest < rate * lr, name
