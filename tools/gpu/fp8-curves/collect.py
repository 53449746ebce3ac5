#!/usr/bin/env python3
"""Losses of all finished runs of run.sh in one file.

Usage: collect.py LOGS FILE    FILE: {"small-bf16": {"1": [loss of each step], ...}, ...}; null: not finite
"""
import glob
import json
import os
import sys

losses = {}
for path in sorted(glob.glob(sys.argv[1] + "/*.jsonl")):
    name, seed = os.path.basename(path)[:-len(".jsonl")].rsplit("-", 1)
    with open(path) as file:
        events = [json.loads(line) for line in file]
    losses.setdefault(name, {})[seed] = [e["loss"] and round(e["loss"], 5) for e in events if e["event"] == "step"]
with open(sys.argv[2], "w") as file:
    json.dump(losses, file)
