#!/usr/bin/env python3
"""How far 8 bits are from bf16, of what run.sh wrote.

Usage: table.py LOSSES.json [--svg MODEL FILE]

Prints, for each model and setting, the mean of the last 100 losses of each seed, and by how many standard deviations of the
seeds of bf16 their mean differs from that of bf16. With --svg draws the running means of a model's first seed.
"""
import argparse
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../real-run"))
from curves import drawing  # noqa: E402

LAST, TOKENS = 100, 8 * 512
COLOURS = ["#000000", "#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7", "#999999"]


def end(losses):
    return statistics.fmean(losses[-LAST:])


def running(losses):
    """(tokens, mean of the 100 losses before) every 20 steps."""
    return [(step * TOKENS, statistics.fmean(losses[step - LAST:step])) for step in range(LAST, len(losses) + 1, 20)]


def table(model, settings):
    reference = [end(losses) for losses in settings["bf16"].values()]
    mean = statistics.fmean(reference)
    deviation = statistics.stdev(reference) if len(reference) > 1 else None
    print(f"\n| {model} | seeds: mean of the last {LAST} losses | mean | beside bf16 | standard deviations |\n|---|---|---:|---:|---:|")
    for name, seeds in settings.items():
        ends = [end(losses) for _, losses in sorted(seeds.items())]
        # Of the seeds that both have.
        same = statistics.fmean(end(settings["bf16"][s]) for s in seeds)
        difference = statistics.fmean(ends) - same
        apart = "" if deviation is None or name == "bf16" else f"{difference / deviation:+.2f}"
        print(f"| {name} | {', '.join(f'{x:.4f}' for x in ends)} | {statistics.fmean(ends):.4f} | {difference:+.4f} | {apart} |")
    if deviation is not None:
        print(f"\nStandard deviation of the seeds of bf16: {deviation:.4f} around {mean:.4f}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("losses")
    parser.add_argument("--svg", nargs=2, metavar=("MODEL", "FILE"))
    args = parser.parse_args()
    with open(args.losses) as file:
        runs = json.load(file)
    models = {}
    for name, seeds in runs.items():
        model, setting = name.split("-", 1)
        models.setdefault(model, {})[setting] = seeds
    for model, settings in models.items():
        table(model, dict(sorted(settings.items(), key=lambda s: (s[0] != "bf16", s[0]))))
    if args.svg:
        model, path = args.svg
        series = [(name, colour, running(seeds[min(seeds)])) for (name, seeds), colour in zip(models[model].items(), COLOURS)]
        low = min(loss for _, _, points in series for _, loss in points) // 0.5 * 0.5
        with open(path, "w") as file:
            file.write(drawing(series, series[0][2][-1][0], low, low + 3.0))


if __name__ == "__main__":
    main()
