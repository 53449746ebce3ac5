#!/usr/bin/env python3
"""What a step costs on meshes of ranks, by prediction: no GPU is needed. A Markdown table, and JSON with --json.

  tools/bench/mesh-table.py models/cs336.mlir --preset=small --rows=4 --seq=1024 --precision=bf16 \\
      --mesh none --mesh data:8 --mesh data:64 --mesh data:1024 --plan "" --plan="--no-clip"

Each --mesh is compiled with each --plan, which is flags of hydrac. --rows is the batch of one rank and one
micro-batch; flags that this script does not know go to hydrac, the same for all."""
import argparse
import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def ranks_of(mesh):
    """The ranks of data:8,model:2; 1 of none."""
    ranks = 1
    for axis in [] if mesh == "none" else mesh.split(","):
        name, _, size = axis.partition(":")
        if not name or not size.isdecimal() or int(size) < 1:
            sys.exit(f"mesh-table.py: --mesh is '{mesh}'; expected NAME:SIZE[,NAME:SIZE]... or none")
        ranks *= int(size)
    return ranks


def hydrac(arguments, flags):
    """The reports of a plan; ends with hydrac's line where it refuses."""
    done = subprocess.run([arguments.hydrac, arguments.model, *flags, "--memory-report=json",
                           "--cost-report=json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit((done.stderr.strip().splitlines() or [f"hydrac ended with status {done.returncode}"])[0])
    decoder = json.JSONDecoder()
    memory, end = decoder.raw_decode(done.stdout)
    return memory, decoder.raw_decode(done.stdout[end:].lstrip())[0]


def figures(arguments, shared, mesh, plan):
    ranks = ranks_of(mesh)
    flags = [*shared, f"--target={arguments.target}", f"--seq={arguments.seq}", f"--accum={arguments.accum}",
             f"--batch={arguments.rows * ranks}", *shlex.split(plan)]
    memory, cost = hydrac(arguments, flags + ([] if mesh == "none" else [f"--mesh={mesh}"]))
    step = cost["step"]
    tokens = arguments.rows * ranks * arguments.accum * arguments.seq
    return {"mesh": mesh, "ranks": ranks, "plan": plan, "tokens": tokens, "wire_bytes": step["wire_bytes"],
            "step_microseconds": step["microseconds"], "wire_microseconds": step["wire_microseconds"],
            "exposed_microseconds": step["exposed_microseconds"],
            "tokens_per_second": 1e6 * tokens / step["microseconds"] if step["microseconds"] > 0 else None,
            "memory_bytes": memory["arena_bytes"], "exchanges": step["exchanges"]}


def line(row):
    exposed = row["exposed_microseconds"]
    share = 100 * exposed / row["step_microseconds"] if row["step_microseconds"] > 0 else 0
    speed = "-" if row["tokens_per_second"] is None else f"{row['tokens_per_second']:,.0f}"
    return (f"| {row['mesh']} | {row['ranks']:,} | {row['plan'] or '-'} | {row['wire_bytes'] / 2**20:,.0f} | "
            f"{row['wire_microseconds'] / 1e3:.2f} | {row['step_microseconds'] / 1e3:.2f} | {exposed / 1e3:.2f} | "
            f"{share:.1f}% | {speed} | {row['memory_bytes'] / 2**30:.2f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--mesh", action="append", required=True, help="as hydrac has it, or none; repeatable")
    parser.add_argument("--plan", action="append", help="flags of hydrac that make one kind of plan; repeatable")
    parser.add_argument("--rows", type=int, required=True, help="of one rank and one micro-batch")
    parser.add_argument("--seq", type=int, required=True)
    parser.add_argument("--accum", type=int, default=1)
    parser.add_argument("--target", default="h200")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="where the same figures go as JSON")
    parser.add_argument("--hydrac", type=pathlib.Path, default=ROOT / "build/dev/bin/hydrac")
    arguments, shared = parser.parse_known_args()
    print("| mesh | ranks | plan | MiB each sends | ms on the wire | step ms | exposed ms | share | tokens/s | "
          "GiB a rank |\n|---|---:|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    rows = []
    for mesh in arguments.mesh:
        for plan in arguments.plan or [""]:
            rows.append(figures(arguments, shared, mesh, plan))
            print(line(rows[-1]), flush=True)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


main()
