#!/usr/bin/env python3
"""How long a token takes, over the length of the text that it is added to.

Usage: text-over-length.py [--bin DIR] [--tokens N] [--every N] [--svg FILE] NAME=PLAN ...

Every plan is one of `hydrac --mode=generate`. hydra-run writes N tokens greedily from initial parameters; a token's time is
that between two of them on its standard output. Prints, for each plan, the memory that it has and the median of every
N tokens at ten lengths, as Markdown; draws all medians.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import time

COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"]  # told apart by all eyes


def times(run, plan, tokens, every):
    """Medians of microseconds a token, of `every` tokens each."""
    command = [run, plan, "--tokenizer=ids", "--seed", "3", "--temperature", "0", "--tokens", str(tokens), "--generate", "1 2 3"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    last, pending, medians = None, [], []
    while part := os.read(process.stdout.fileno(), 1 << 16):
        now, count = time.perf_counter(), part.count(b" ")
        if last is not None and count:
            pending += [(now - last) / count * 1e6] * count
        last = now
        while len(pending) >= every:
            medians.append(statistics.median(pending[:every]))
            del pending[:every]
    error = process.stderr.read().decode()
    if process.wait() != 0:
        sys.exit(f"{plan}: {error.strip().splitlines()[-1]}")
    return medians


def memory(inspect, plan):
    """Bytes of a plan's segments."""
    said = json.loads(subprocess.run([inspect, plan, "--json"], check=True, capture_output=True, text=True).stdout)
    return sum(segment["size"] for segment in said["segments"])


def drawing(series, every):
    """Medians over tokens, as SVG."""
    width, height, left, bottom, top, right = 720, 320, 64, 48, 16, 150
    most_x = max(len(m) for m in series.values()) * every
    lowest = math.floor(math.log10(min(min(m) for m in series.values())))
    highest = math.ceil(math.log10(max(max(m) for m in series.values())))
    x = lambda tokens: left + tokens / most_x * (width - left - right)
    y = lambda us: height - bottom - (math.log10(us) - lowest) / (highest - lowest) * (height - bottom - top)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for us in (10**i for i in range(lowest, highest + 1)):
        out += [f'<line x1="{left}" x2="{width - right}" y1="{y(us):.1f}" y2="{y(us):.1f}" stroke="#dddddd"/>',
                f'<text x="{left - 6}" y="{y(us) + 4:.1f}" text-anchor="end" fill="#333333">{us:,}</text>']
    for tokens in (most_x * i / 5 for i in range(6)):
        out += [f'<text x="{x(tokens):.1f}" y="{height - bottom + 18}" text-anchor="middle" fill="#333333">{tokens:,.0f}</text>']
    out += [f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle" fill="#333333">tokens of the text</text>',
            f'<text transform="translate(14 {height / 2}) rotate(-90)" text-anchor="middle" fill="#333333">µs a token</text>']
    for i, (name, medians) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        points = " ".join(f"{x((j + 1) * every):.1f},{y(us):.1f}" for j, us in enumerate(medians))
        out += [f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
                f'<rect x="{width - right + 12}" y="{top + 20 * i}" width="12" height="12" fill="{colour}"/>',
                f'<text x="{width - right + 30}" y="{top + 20 * i + 11}" fill="#333333">{name}</text>']
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bin", default="build/dev/bin")
    parser.add_argument("--tokens", type=int, default=100000)
    parser.add_argument("--every", type=int, default=1000)
    parser.add_argument("--svg")
    parser.add_argument("plans", nargs="+", metavar="NAME=PLAN")
    args = parser.parse_args()
    series = {}
    lengths = [args.tokens * i // 10 for i in range(1, 11)]
    print("| plan | MiB | " + " | ".join(f"{n:,}" for n in lengths) + " |\n|---|---:|" + "---:|" * 10)
    for plan in args.plans:
        name, _, path = plan.partition("=")
        medians = times(os.path.join(args.bin, "hydra-run"), path, args.tokens, args.every)
        series[name] = medians
        mib = memory(os.path.join(args.bin, "hydra-inspect"), path) / 2**20
        at = [medians[min(n // args.every, len(medians)) - 1] for n in lengths]
        print(f"| {name} | {mib:.2f} | " + " | ".join(f"{us:.0f}" for us in at) + " |", flush=True)
    if args.svg:
        with open(args.svg, "w") as file:
            file.write(drawing(series, args.every))


if __name__ == "__main__":
    main()
