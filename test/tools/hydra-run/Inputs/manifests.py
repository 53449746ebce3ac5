"""Copies of a checkpoint with another checkpoint.json. Usage: manifests.py CHECKPOINT FOLDER

Beside FOLDER, `older` has the manifest that versions without a hash wrote.
"""
import json
import os
import shutil
import sys

source, folder = sys.argv[1:]
with open(os.path.join(source, "checkpoint.json")) as file:
    manifest = json.load(file)
hashed = dict(manifest)
del manifest["hash"]


def copy(target):
    shutil.copytree(source, target)
    os.remove(os.path.join(target, "checkpoint.json"))
    return os.path.join(target, "checkpoint.json")


def write(target, text):
    with open(copy(target), "w") as file:
        file.write(text)


def edit(name, base=manifest, **changes):
    write(os.path.join(folder, name), json.dumps({**base, **changes}))


write(os.path.join(os.path.dirname(folder), "older"), json.dumps(manifest, indent=2))
edit("edited", hashed, step=2)
edit("seed", seed=-1)
edit("step-negative", step=-3)
edit("step-huge", step=2**63)
edit("step-real", step=3.5)
edit("step-00000007")
edit("plan-of-nothing", plan={})
edit("plan-of-text", plan="x")
edit("policies", policies={"flags": {"dynamic-clip": 2}, "numbers": {}})
edit("policies-unknown", policies={"flags": {"warmth": "2"}, "numbers": {}})
edit("run-of-nothing", run={})
edit("run-of-text", run="x")
edit("run-open", run={**manifest["run"], "scalars": {"lr": {**manifest["run"]["scalars"]["lr"], "present": {}}}})
edit("format", format=4)
edit("data", data=7)
edit("hashes", hashes={**manifest["hashes"], "a" * 100000: []})
edit("missing", {key: value for key, value in manifest.items() if key != "schedules"})
write(os.path.join(folder, "array"), "[]")
write(os.path.join(folder, "empty"), "")
write(os.path.join(folder, "deep"), '{"plan":' + "[" * 1000000)
os.mkdir(copy(os.path.join(folder, "directory")))
os.mkfifo(copy(os.path.join(folder, "pipe")))
edit("tensors-pipe")
tensors = os.path.join(folder, "tensors-pipe", "model.safetensors")
os.remove(tensors)
os.mkfifo(tensors)
