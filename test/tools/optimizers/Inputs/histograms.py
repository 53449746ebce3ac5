"""histograms.py LOG GROUP=ELEMENTS...: in every step the counts of each group are of so many elements, and its norm is
one of numbers that have these magnitudes."""
import json
import math
import sys

FIRST = -40
sizes = {group: int(size) for group, size in (one.split("=") for one in sys.argv[2:])}
steps = [e for e in map(json.loads, open(sys.argv[1])) if e["event"] == "step"]
assert steps
for step in steps:
    outputs = step["outputs"]
    found = {name.split(".", 1)[1]: counts for name, counts in outputs.items() if name.startswith("grad_histogram.")}
    assert sorted(found) == sorted(sizes), found
    for group, counts in found.items():
        assert len(counts) == 64 and sum(counts) == sizes[group], (group, sum(counts))
        assert counts[-1] == 0, counts  # nothing of such a size, so that there is a bound
        squares = outputs["grad_norm." + group] ** 2
        least = sum(count * 4.0 ** (FIRST + i - 0.5) for i, count in enumerate(counts) if i > 0)
        most = sum(count * 4.0 ** (FIRST + i + 0.5) for i, count in enumerate(counts))
        assert 0.9999 * least <= squares <= 1.0001 * most, (group, least, squares, most)
