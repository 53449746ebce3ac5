#!/usr/bin/env python3
"""Writes docs/passes.md: what CS336 models cost on an H200, and what each pass is good for; by prediction alone.

  tools/bench/passes-table.py [--build build/dev] > docs/passes.md
"""
import argparse
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEAD = """# Passes and what they are good for

`hydrac --list-passes` lists them in order; [Passes.td](../passes/Passes.td) describes each; `--disable-pass=NAME`
leaves one out. Everything below is a prediction for `--target=h200`, from steps that were measured on one
([h200.json](../compiler/targets/h200.json), [how well](performance.md#predicted-time)); nothing was run for them. The file is what
`tools/bench/passes-table.py` prints."""


def bench(build, definition):
    """The tables of a sweep."""
    text = subprocess.run([build / "bin/hydra-bench", ROOT / "tools/bench" / definition], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    print("\n" + text, end="", flush=True)


def hydrac(build, *flags):
    return subprocess.run([build / "bin/hydrac", ROOT / "models/cs336.mlir", "--batch=4", "--target=h200", *flags],
                          check=True, stdout=subprocess.PIPE, text=True).stdout


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
    bench(build, "cs336-limits.json")
    for size in ("small", "xl"):
        for flags in (["--precision=bf16"], ["--precision=bf16", "--no-clip"]):
            print(f"\n## Without each pass: {size}, 4 x 512, train {' '.join(flags)}\n")
            print("`hydrac --explain`: the difference to all passes; `-` is none.\n")
            explanation(build, size, *flags)
    bench(build, "recompute.json")
    bench(build, "budget.json")


main()
