# Every wrong definition is refused in one line before anything is measured: mistakes.py DEFINITION
import copy
import json
import subprocess
import sys

good = json.load(open(sys.argv[1]))


def changed(change):
    definition = copy.deepcopy(good)
    change(definition)
    return definition


def column(**what):
    return lambda d: d["tables"][0]["columns"].append(what)


mistakes = {
    "there is no member 'stps'; did you mean 'steps'?": lambda d: d.update(stps=1),
    "'axes' is missing": lambda d: d.pop("axes"),
    "axis 'seq': expected a list of values": lambda d: d["axes"].update(seq=[]),
    "there are two values '16'": lambda d: d["axes"].update(seq=[16, 16]),
    "a value has no 'name'": lambda d: d["axes"].update(seq=[{"hydrac": ["--seq=16"]}]),
    "'steps' is \"many\"; expected a number of steps": lambda d: d.update(steps="many"),
    "'hydrac' is 3; expected a list of flags": lambda d: d.update(hydrac=3),
    "'profile' needs 'steps'": lambda d: d.update(steps=0),
    "has no model": lambda d: d.pop("model"),
    "no number below 0": lambda d: d.update(warm_up=-1),
    "'size' is no axis": lambda d: d["except"].append({"size": "1"}),
    "a table has no list of 'columns'": lambda d: d["tables"].append({"rows": []}),
    "'rows' of a table names \"size\", which is no axis": lambda d: d["tables"][0]["rows"].append("size"),
    "a column has no 'title'": column(value="bench.median_ms"),
    "has not one of value, text, sum, top, ratio, change and axis": column(title="x"),
    "'steps' is 2.5; expected a number of steps": lambda d: d.update(steps=2.5),
    "which is no value of the axis 'mode'": lambda d: d["except"].append({"mode": "trian"}),
    "'ratio' names the column \"nothing\", which is not to the left": column(title="x", ratio=["bytes", "nothing"]),
    "'change' names the column \"seq\", which is not to the left": column(title="x", change=["bytes", "seq"]),
    "'ratio' takes two columns": column(title="x", ratio=["bytes"]),
    "has -1 digits; expected a number from 0 to 17": column(title="x", value="bench.median_ms", digits=-1),
    "names the axis 'size', which there is not": column(title="x", value="bench.median_ms", where={"size": "1"}),
}
for words, change in mistakes.items():
    with open("mistake.json", "w") as file:
        json.dump(changed(change), file)
    run = subprocess.run(["hydra-bench", "mistake.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert run.returncode == 1 and run.stdout == "", (words, run)
    assert run.stderr.count("\n") == 1 and run.stderr.startswith("hydra-bench: mistake.json: ") and words in run.stderr, (words, run.stderr)
with open("mistake.json", "w") as file:
    file.write(json.dumps(good) + "\0more")
run = subprocess.run(["hydra-bench", "mistake.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
assert run.returncode == 1 and run.stderr == f"hydra-bench: mistake.json: has a zero byte at {len(json.dumps(good))}; expected JSON text\n", run
print("all", len(mistakes), "mistakes are one line")
