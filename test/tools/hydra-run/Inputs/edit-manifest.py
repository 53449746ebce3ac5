"""Sets a number of a checkpoint's manifest, which then has no hash: edit-manifest.py CHECKPOINT a.b.c=VALUE."""
import json
import os
import sys

path = os.path.join(sys.argv[1], "checkpoint.json")
place, value = sys.argv[2].split("=")
*outer, last = place.split(".")
manifest = json.load(open(path))
del manifest["hash"]
inner = manifest
for name in outer:
    inner = inner[name]
assert last in inner, place
inner[last] = json.loads(value)
open(path, "w").write(json.dumps(manifest))
