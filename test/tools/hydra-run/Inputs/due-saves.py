"""due-saves.py LOG EVERY: that checkpoints are behind the first step from each multiple on that was no refused one."""
import json
import sys

path, every = sys.argv[1], int(sys.argv[2])
events = [json.loads(line) for line in open(path)]
last = max(e["step"] for e in events if e["event"] == "step")
skipped = {e["step"] for e in events if e["event"] == "skipped"}
saved = {e["step"] for e in events if e["event"] == "checkpoint"}
assert any(s % every == 0 for s in skipped), skipped
expected, due = {last}, False
for step in range(1, last + 1):
    due |= step % every == 0
    if due and step not in skipped:
        expected.add(step)
        due = False
assert saved == expected, (saved, expected, skipped)
