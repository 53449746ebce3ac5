"""Adds to a TTT model what one reads token by token. Usage: ttt-primal.py MODEL FOLDER TOKENS; writes model.mlir and
in.safetensors.

The entry @dual calls the model's own @learn_and_read; @primal takes all steps of a chunk at its first weights, and
applies them one after the other (models.md 4.3). Both give z and end.
"""
import array
import json
import os
import struct
import sys

ARGUMENTS = """(%q: [B, H, S, d] f32, %k: [B, H, S, d] f32, %v: [B, H, S, d] f32, %eta: [B, gates, S, 1] f32,
               %start: [B, H, d, d] f32, %ln_w: [H, d] f32, %ln_b: [H, d] f32) dims(B, S) {
    %gamma = hydra.reshape %ln_w shape = [1, H, 1, d]
    %beta = hydra.reshape %ln_b shape = [1, H, 1, d]
"""
ENTRIES = """
  hydra.entry @dual""" + ARGUMENTS + """
    %z, %end = hydra.call @learn_and_read(%q, %k, %v, %eta, %start, %gamma, %beta, C = ceil(1.0 * S / b0))
    hydra.return z = %z, end = %end
  }
  hydra.entry @primal""" + ARGUMENTS + """
    %z, %end = hydra.scan axis = 2 chunk = b0 over(%qc = %q, %kc = %k, %vc = %v, %ec = %eta) carry(%w = %start) {
      %t = hydra.matmul %kc, %w transpose_b
      %x, %r = hydra.call @normalise(%t)
      %scaled = hydra.mul %x, %gamma
      %shifted = hydra.add %scaled, %beta
      %y = hydra.add %kc, %shifted
      %error = hydra.sub %y, %vc
      %two = hydra.constant value = 2.0 / rows
      %g = hydra.mul %error, %two
      %gh = hydra.mul %g, %gamma
      %mean = hydra.mean %gh axes = [3] keep
      %products = hydra.mul %gh, %x
      %slope = hydra.mean %products axes = [3] keep
      %along = hydra.mul %x, %slope
      %rest = hydra.sub %gh, %mean
      %across = hydra.sub %rest, %along
      %u = hydra.mul %across, %r
      %zc, %next = hydra.scan axis = 2 chunk = 1 over(%qi = %qc, %ki = %kc, %ui = %u, %ei = %ec) carry(%wi = %w) {
        %read = hydra.matmul %qi, %wi transpose_b
        %n, %rq = hydra.call @normalise(%read)
        %nw = hydra.mul %n, %gamma
        %nb = hydra.add %nw, %beta
        %zi = hydra.add %qi, %nb
        %step = hydra.mul %ui, %ei
        %outer = hydra.matmul %step, %ki transpose_a
        %after = hydra.sub %wi, %outer
        hydra.yield %zi, %after
      }
      hydra.yield %zc, %next
    }
    hydra.return z = %z, end = %end
  }
}
"""
B, H, d, S = 2, 3, 8, int(sys.argv[3])
state = 7


def numbers(shape, scale, plus=0.0):
    global state
    values = array.array("f")
    count = 1
    for size in shape:
        count *= size
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        values.append(plus + scale * (state / 2**63 - 1))
    return shape, values


with open(sys.argv[1]) as file:
    text = file.read().rstrip()
assert text.endswith("}")
with open(os.path.join(sys.argv[2], "model.mlir"), "w") as file:
    file.write(text[:-1].rstrip() + "\n" + ENTRIES)
rows = [B, H, S, d]
tensors = {"q": numbers(rows, 1), "k": numbers(rows, 1), "v": numbers(rows, 1), "eta": numbers([B, 1, S, 1], 0.2, 0.3),
           "start": numbers([B, H, d, d], 0.3), "ln_w": numbers([H, d], 0.2, 1.0), "ln_b": numbers([H, d], 0.2)}
header, data = {}, b""
for key, (shape, values) in tensors.items():
    header[key] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + 4 * len(values)]}
    data += values.tobytes()
encoded = json.dumps(header).encode()
with open(os.path.join(sys.argv[2], "in.safetensors"), "wb") as file:
    file.write(struct.pack("<Q", len(encoded)) + encoded + data)
