"""went-back.py RUN NEW: copies a run and lets its log go back to step 4, make steps 5 to 8 again, the last of which has no label
that counts and one of which has a loss that is no number; and gives a flag twice."""
import json
import os
import shutil
import sys

run, new = sys.argv[1:]
shutil.copytree(run, new)
with open(os.path.join(new, "log.jsonl")) as log:
    events = [json.loads(line) for line in log]
start = [e for e in events if e["event"] == "start"][-1]
steps = {e["step"]: e for e in events if e["event"] == "step"}
more = [dict(start, step=4)]
for step, milliseconds in zip(range(5, 9), (1, 2, 3, 4)):
    more.append(dict(steps[step], step_ms=milliseconds))
more[2]["loss"] = None
more[-1].update(loss=0.0, labels=0)
for step in range(1, 5):
    events = [dict(e, step_ms=10.0) if e["event"] == "step" and e["step"] == step else e for e in events]
with open(os.path.join(new, "log.jsonl"), "w") as log:
    log.writelines(json.dumps(e) + "\n" for e in events + more)
path = os.path.join(new, "run.json")
with open(path) as file:
    content = json.load(file)
content["arguments"] += [["--eval-data", "a=one"], ["--eval-data", "b=two"]]
with open(path, "w") as file:
    json.dump(content, file)
