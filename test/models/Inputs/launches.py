"""Reads a plan (hydrac --compile-to=plan), counts the steps of its program `train`, or that of --program=NAME, by kind, and compares them with
KIND=NUMBER arguments: more steps of a kind, or a kind that is not given, is an error. A launch of a group of row-wise
operations is a `kernel`; of kernels of the backend's own the kind is their name. Loops and switches count what is inside.
Without arguments it prints the numbers."""
import collections
import re
import sys

wanted = "train"
if sys.argv[1:] and sys.argv[1].startswith("--program="):
    wanted = sys.argv.pop(1).removeprefix("--program=")
program, found = None, collections.Counter()
own = set()
for line in sys.stdin:
    if kernel := re.match(r"\s*plan\.kernel @(\S+) .*\bsource\b", line):
        own.add(kernel[1])
    elif named := re.match(r"\s*plan\.program @(\S+)", line):
        program = named[1]
    elif program == wanted and (step := re.match(r"\s*plan\.(\w+)(?: @([\w.]+)\()?", line)):
        kind, kernel = step[1], step[2]
        if kind == "launch":
            kind = re.sub(r"_\d+$", "", kernel) if kernel in own or kernel.startswith("combine_") else "kernel"
        if kind not in ("buffer", "view", "input", "output", "switch", "loop"):
            found[kind] += 1

counts = " ".join(f"{kind}={n}" for kind, n in sorted(found.items()))
if len(sys.argv) == 1:
    print(counts)
    sys.exit()
expected = {kind: int(n) for kind, n in (pair.split("=") for pair in sys.argv[1:])}
worse = [f"{kind} {n} (expected at most {expected.get(kind, 0)})" for kind, n in sorted(found.items()) if n > expected.get(kind, 0)]
if worse:
    sys.exit(f"more steps: {', '.join(worse)}\nall: {counts}")
