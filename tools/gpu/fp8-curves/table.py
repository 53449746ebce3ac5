#!/usr/bin/env python3
"""How far 8 bits are from bf16, of what run.sh wrote.

Usage: table.py LOSSES.json [--svg MODEL FILE]

Prints, for each model and setting, the mean of the last 100 losses of each seed, their mean and standard deviation, and by how
many standard deviations of the seeds of bf16 their mean differs from that of bf16, of the seeds that both have: two are the
bound. With --svg draws the running means of a model's first seed.
"""
import argparse
import json
import os
import statistics
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../real-run"))
from curves import drawing  # noqa: E402

LAST, TOKENS, BOUND = 100, 8 * 512, 2
COLOURS = ["#000000", "#0072b2", "#56b4e9", "#009e73", "#d55e00", "#e69f00", "#cc79a7", "#999999"]


def mean(losses):
    """Of those that are finite; none: NaN."""
    finite = [loss for loss in losses if loss is not None]
    return statistics.fmean(finite) if finite else float("nan")


def end(losses):
    return mean(losses[-LAST:])


def deviation(values):
    return statistics.stdev(values) if len(values) > 1 else None


def running(losses):
    """(tokens, mean of the 100 losses before) every 20 steps."""
    return [(step * TOKENS, mean(losses[step - LAST:step])) for step in range(LAST, len(losses) + 1, 20)]


def table(model, settings):
    ends = {name: {seed: end(losses) for seed, losses in sorted(seeds.items())} for name, seeds in settings.items()}
    reference = ends.get("bf16", {})
    spread = deviation(list(reference.values()))
    print(f"\n| {model} | seeds: mean of the last {LAST} losses | mean | standard deviation | beside bf16 | in its deviations | within {BOUND} |\n"
          "|---|---|---:|---:|---:|---:|---|")
    for name, of in ends.items():
        own = deviation(list(of.values()))
        cells = [name, ", ".join(f"{x:.4f}" for x in of.values()), f"{statistics.fmean(of.values()):.4f}", "" if own is None else f"{own:.4f}"]
        both = [seed for seed in of if seed in reference]
        difference = statistics.fmean(of[s] - reference[s] for s in both) if both and name != "bf16" else None
        apart = difference / spread if difference is not None and spread else None
        cells += ["" if difference is None else f"{difference:+.4f}", "" if apart is None else f"{apart:+.2f}"]
        cells += ["" if apart is None else "yes" if abs(apart) <= BOUND else "no"]
        print(f"| {' | '.join(cells)} |")
    for name, seeds in settings.items():
        for seed, losses in sorted(seeds.items()):
            if losses.count(None):
                print(f"\n{model}-{name}, seed {seed}: {losses.count(None)} losses are not finite and not counted.")


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
