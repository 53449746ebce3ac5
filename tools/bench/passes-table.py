#!/usr/bin/env python3
"""Writes docs/passes.md: what CS336 models cost on an H200, and what each pass is good for; by prediction alone.

  tools/bench/passes-table.py [--build build/dev] > docs/passes.md
"""
import argparse
import json
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
SIZES = ["small", "medium", "large", "xl", "2.7B"]
LENGTHS = [128, 256, 512, 1024]
MODES = {"forward": ["--mode=forward", "--program", "loss:loss"], "forward + backward": ["--mode=grad"],
         "train": ["--mode=train"]}

HEAD = """# Passes and what they are good for

`hydrac --list-passes` lists them in order; [Passes.td](../passes/Passes.td) describes each; `--disable-pass=NAME`
leaves one out. Everything below is a prediction for `--target=h200` (peak rates and the bandwidth of memory:
[h200.json](../compiler/targets/h200.json)); nothing was run. The file is what `tools/bench/passes-table.py` prints.

## CS336 models, B = 4, all passes

`peak` is the whole arena: parameters, state and the largest program. Logits come in chunks of rows, so `forward`
never holds them as a whole. bf16 is `--precision=bf16`: parameters, moments and gradients stay f32.

| size | S | mode | GFLOP | fp32: peak GiB | traffic GB | ms at the limit | bf16: peak GiB | traffic GB | ms at the limit |
|---|---:|---|---:|---:|---:|---:|---:|---:|---:|"""


def hydrac(build, *flags):
    return subprocess.run([build / "bin/hydrac", ROOT / "models/cs336.mlir", "--batch=4", "--target=h200", *flags],
                          check=True, stdout=subprocess.PIPE, text=True).stdout


def figures(build, size, length, mode, flags, precision):
    """Predicted FLOPs, and peak GiB, traffic in GB and ms as text."""
    text = hydrac(build, f"--preset={size}", f"--seq={length}", f"--precision={precision}", *flags,
                  "--memory-report=json", "--cost-report=json")
    decoder = json.JSONDecoder()
    memory, end = decoder.raw_decode(text)
    cost, _ = decoder.raw_decode(text[end:].lstrip())
    names = {"forward": "loss", "forward + backward": "loss", "train": "train"}
    total = next(p["total"] for p in cost["programs"] if p["name"] == names[mode])
    program = next(p for p in memory["programs"] if p["name"] == names[mode])
    peak = memory["persistent_bytes"] + program["peak_bytes"]
    return total["flops"], (f"{peak / 2**30:.2f} | {total['bytes'] / 1e9:.1f} | "
                            f"{total['microseconds'] / 1e3:.2f}")


def row(build, size, length, mode, flags):
    flops, single = figures(build, size, length, mode, flags, "fp32")
    _, half = figures(build, size, length, mode, flags, "bf16")
    print(f"| {size} | {length} | {mode} | {flops / 1e9:.0f} | {single} | {half} |", flush=True)


def explanation(build, size, *flags):
    lines = hydrac(build, f"--preset={size}", "--seq=512", *flags, "--explain").splitlines()
    print("| | " + " | ".join(re.split(r"  +", lines[0].strip())) + " |\n|---|---:|---:|---:|---:|")
    for line in lines[1:]:
        print("| " + " | ".join(re.split(r"  +", line.strip())) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    build = parser.parse_args().build.resolve()
    print(HEAD)
    for size in SIZES:
        for length in LENGTHS:
            for mode, flags in MODES.items():
                row(build, size, length, mode, flags)
    for size in ("small", "xl"):
        for flags in (["--precision=bf16"], ["--precision=bf16", "--no-clip"]):
            print(f"\n## Without each pass: {size}, 4 x 512, train {' '.join(flags)}\n")
            print("`hydrac --explain`: the difference to all passes; `-` is none.\n")
            explanation(build, size, *flags)
    print("\n## Recomputation: 4 x 512, train, bf16\n\n| size | --recompute | peak GiB | ms at the limit |\n|---|---|---:|---:|")
    for size in ("small", "xl", "2.7B"):
        for recompute in ("none", "light", "rowwise", "every=2", "every=1"):
            text = hydrac(build, f"--preset={size}", "--seq=512", "--precision=bf16",
                          f"--recompute={recompute}", "--memory-report=json", "--cost-report=json")
            decoder = json.JSONDecoder()
            memory, end = decoder.raw_decode(text)
            cost, _ = decoder.raw_decode(text[end:].lstrip())
            print(f"| {size} | {recompute} | {memory['arena_bytes'] / 2**30:.2f} | "
                  f"{cost['programs'][0]['total']['microseconds'] / 1e3:.2f} |", flush=True)


main()
