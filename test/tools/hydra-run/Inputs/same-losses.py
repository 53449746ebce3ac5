"""Compares the losses that hydra-run printed in several runs. Usage: same-losses.py FILE FILE..."""
import re
import sys


def losses(path):
    return [float(x) for x in re.findall(r"(?:^step +\d+  loss|held-out loss|: loss) (\S+)",
                                         open(path).read(), re.MULTILINE)]


first = losses(sys.argv[1])
assert len(first) > 3, sys.argv[1]
for path in sys.argv[2:]:
    others = losses(path)
    assert len(first) == len(others), (path, first, others)
    for one, other in zip(first, others):
        # Six digits are printed; sums of floats have another order.
        assert abs(one - other) <= 1e-5 * abs(one), (path, first, others)
