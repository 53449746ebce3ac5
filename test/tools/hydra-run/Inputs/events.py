#!/usr/bin/env python3
"""events.py LOG: the events of a log of hydra-run with their steps, and of steps the learning rate;
fails unless every line is JSON with finite numbers."""
import json
import math
import sys

for line in open(sys.argv[1]):
    event = json.loads(line)
    for key, value in event.items():
        assert not isinstance(value, float) or math.isfinite(value), f"{key} is {value}"
    rate = f" {event['learning_rate']:.6f}" if event["event"] == "step" else ""
    print(event["event"], event["step"], end=rate + "\n")
