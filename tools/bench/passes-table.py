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
leaves one out. Everything below is a prediction for `--target=h200` in fp32 (products at 60 TFLOP/s, memory at 4.28
TB/s: [h200.json](../compiler/target/h200.json)); nothing was run. The file is what `tools/bench/passes-table.py`
prints.

## CS336 models, B = 4, fp32, all passes

`peak` is the whole arena: parameters, state and the largest program. Logits come in chunks of rows, so `forward`
never holds them as a whole.

| size | S | mode | peak GiB | GFLOP | traffic GB | ms at the limit |
|---|---:|---|---:|---:|---:|---:|"""


def hydrac(build, *flags):
    return subprocess.run([build / "bin/hydrac", ROOT / "models/cs336.mlir", "--batch=4", "--target=h200", *flags],
                          check=True, stdout=subprocess.PIPE, text=True).stdout


def row(build, size, length, mode, flags):
    text = hydrac(build, f"--preset={size}", f"--seq={length}", *flags, "--memory-report=json", "--cost-report=json")
    decoder = json.JSONDecoder()
    memory, end = decoder.raw_decode(text)
    cost, _ = decoder.raw_decode(text[end:].lstrip())
    names = {"forward": "loss", "forward + backward": "loss", "train": "train"}
    total = next(p["total"] for p in cost["programs"] if p["name"] == names[mode])
    program = next(p for p in memory["programs"] if p["name"] == names[mode])
    peak = memory["persistent_bytes"] + program["peak_bytes"]
    print(f"| {size} | {length} | {mode} | {peak / 2**30:.2f} | {total['flops'] / 1e9:.0f} | "
          f"{total['bytes'] / 1e9:.1f} | {total['microseconds'] / 1e3:.2f} |", flush=True)


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
        for flags in ([], ["--no-clip"]):
            print(f"\n## Without each pass: {size}, 4 x 512, train {' '.join(flags)}".rstrip() + "\n")
            print("`hydrac --explain`: the difference to all passes; `-` is none.\n")
            explanation(build, size, *flags)
    print("\n## Recomputation: 4 x 512, train\n\n| size | --recompute | peak GiB | ms at the limit |\n|---|---|---:|---:|")
    for size in ("small", "xl", "2.7B"):
        for recompute in ("none", "light", "rowwise", "every=2", "every=1"):
            text = hydrac(build, f"--preset={size}", "--seq=512", f"--recompute={recompute}",
                          "--memory-report=json", "--cost-report=json")
            decoder = json.JSONDecoder()
            memory, end = decoder.raw_decode(text)
            cost, _ = decoder.raw_decode(text[end:].lstrip())
            print(f"| {size} | {recompute} | {memory['arena_bytes'] / 2**30:.2f} | "
                  f"{cost['programs'][0]['total']['microseconds'] / 1e3:.2f} |", flush=True)


main()
