"""Makes a checkpoint what it was before updates were counted: without-count.py CHECKPOINT."""
import json
import os
import sys

path = os.path.join(sys.argv[1], "checkpoint.json")
manifest = json.load(open(path))
manifest["format"] = 1
del manifest["hash"], manifest["hashes"]["step"]
open(path, "w").write(json.dumps(manifest))
