"""Usage: same-checkpoints.py [--tensors] DIR OTHER: fails unless two checkpoints have the same tensors, byte for byte, at the
same step, with the same counts; with --tensors by their hashes, so that models may differ in a choice, which files name."""
import json
import sys

*flags, one, other = sys.argv[1:]
for name in () if flags == ["--tensors"] else ("model.safetensors", "optimizer.safetensors"):
    with open(f"{one}/{name}", "rb") as x, open(f"{other}/{name}", "rb") as y:
        if x.read() != y.read():
            sys.exit(f"{name} differs between {one} and {other}")
a, b = (json.load(open(f"{directory}/checkpoint.json")) for directory in (one, other))
for key in ("step", "seed", "data", "schedules", "counts", "hashes"):
    if a[key] != b[key]:
        sys.exit(f"{key} differs: {a[key]} in {one}, {b[key]} in {other}")
