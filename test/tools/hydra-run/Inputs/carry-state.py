"""A model in one call and in several: carry-state.py HYDRA-RUN FOLDER; the plans lie in the folder.

s32, s25, s7 and s1.fb read so many tokens; logits.fb scores 32 without a state; shapes.json has those of s1's inputs.
"""
import array
import json
import os
import sys

from calls import expect, ids, numbers, real, rows_of, run

folder = sys.argv[2]
B, V = 2, 97
tokens = [[(i * i * 5 + 3 * i + b * 11) % V for i in range(32)] for b in range(B)]
sizes = json.load(open(os.path.join(folder, "shapes.json")))
state_names = [name for name in sizes if name not in ("tokens", "position")]


def zeros(shape):
    count = 1
    for size in shape:
        count *= size
    return ("F32", shape, array.array("f", [0.0] * count).tobytes())


def read(calls):
    """Scores of 32 tokens in calls of these lengths, and the last state."""
    state, at, scores = {name: zeros(sizes[name]) for name in state_names}, 0, [array.array("f") for _ in range(B)]
    for count in calls:
        out = run(f"s{count}", {"tokens": ids(tokens, at, count), "position": real(at), **state})
        state, at = {name: out[name] for name in state_names}, at + count
        for b, row in enumerate(rows_of(out["logits"])):
            scores[b] += row
    return scores[0] + scores[1], state


whole, end = read([32])
plain = numbers(run("logits", {"tokens": ids(tokens, 0, 32)})["logits"])
expect("from the beginning it is the model", plain, whole, 2e-5)
for calls in ([7, 25], [25, 7], [1] * 32):
    scores, last = read(calls)
    expect(f"{len(calls)} calls give the same scores", whole, scores, 2e-5)
    for name in state_names:
        expect(f"and leave the same {name}", numbers(end[name]), numbers(last[name]), 2e-5)
