"""split.py FILE: the configurations of a file, each in a directory of its name."""
import json
import pathlib
import sys

for name, config in json.loads(pathlib.Path(sys.argv[1]).read_text()).items():
    pathlib.Path(name).mkdir()
    pathlib.Path(name, "config.json").write_text(json.dumps(config))
