#!/usr/bin/env python3
"""Measures Megalodon in a folder for each run, R21.

  tools/bench/megalodon-runs.py DIR [--build build/dev] [--preset mega200M] [--seq 2048 4096] [--batch 1] [--target h200]

DIR/<dtype>_<reduction>_L<S> has ms_per_step.txt (`ms_per_step=12.345`), peak_mem_gb.txt (`peak_mem_gb=1.234`, GiB),
ops_by_time.md and ops_by_memory.md, profile.json with all tables, speed_step<N>.json, a time line of the last N steps, and
ema_scan.json, ema_seq.json and ema_fft.json: time lines of a forward pass with the moving averages of all tokens, token by token
and by Fourier transforms, where spans EMA_SCAN_L<S>, EMA_SEQ_L<S> and EMA_FFT_L<S> go from the first to the last step of
each layer's average.
"""
import argparse
import json
import pathlib
import re
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
STEPS = 10
# Whether matmuls may add partial sums in bf16; of fp32 there is nothing to choose.
RUNS = [("fp32", "auto", []), ("bf16", "auto", []), ("bf16", "on", ["--bf16-reduced-precision-reduction"]),
        ("bf16", "off", [])]


def run(*command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(done.stderr.strip())
    return done.stdout


def markdown(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def add_spans(path, name):
    """Puts a span around what each run of a layer's moving average does, on a row of its own."""
    trace = json.loads(path.read_text())
    ends = {}
    for event in trace["traceEvents"]:
        at = event.get("args", {})
        layer = re.match(r"(layers\.\d+)\.moving_average", at.get("path", ""))
        if layer:
            key = at["correlation"], layer[1]
            begin, end = ends.get(key, (event["ts"], 0))
            ends[key] = min(begin, event["ts"]), max(end, event["ts"] + event["dur"])
    for (number, layer), (begin, end) in sorted(ends.items()):
        trace["traceEvents"].append({"ph": "X", "cat": "user_annotation", "name": name, "ts": begin, "dur": end - begin,
                                     "pid": 1, "tid": 3000, "args": {"path": layer, "run": number}})
    path.write_text(json.dumps(trace))


def measure(folder, compile_, execute):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        plan, times = pathlib.Path(scratch, "plan.fb"), pathlib.Path(scratch, "times.json")
        compile_(["-o", plan])
        profile = json.loads(execute([plan, f"--bench={STEPS}", f"--bench-json={times}", "--profile=json"]))
        bench = json.loads(times.read_text())
        execute([plan, f"--bench={STEPS}", f"--profile={folder / f'speed_step{STEPS}.json'}"])
        for form, short in (("scan", "scan"), ("sequential", "seq"), ("fft", "fft")):
            compile_(["-o", plan, "--mode=forward", "--program=loss:loss", f"--set=ema={form}"])
            execute([plan, "--bench=1", f"--profile={folder / f'ema_{short}.json'}"])
            add_spans(folder / f"ema_{short}.json", f"EMA_{short.upper()}_L{folder.name.rpartition('_L')[2]}")
    ms = 1e3 * sum(bench["step_seconds"]) / len(bench["step_seconds"])
    (folder / "ms_per_step.txt").write_text(f"ms_per_step={ms:.3f}\n")
    (folder / "peak_mem_gb.txt").write_text(f"peak_mem_gb={bench['arena_bytes'] / 2**30:.3f}\n")
    (folder / "profile.json").write_text(json.dumps(profile, indent=1) + "\n")
    (folder / "ops_by_time.md").write_text(markdown(
        ["operation", "ms", "%", "calls", "cpu ms"],
        [[one["name"], f"{one['microseconds'] / 1e3:.4f}", f"{one['percent']:.1f}", f"{one['calls']:g}",
          f"{one['host_microseconds'] / 1e3:.4f}"] for one in profile["ranking"]]))
    (folder / "ops_by_memory.md").write_text(markdown(
        ["values made by", "MiB", "%", "values", "largest MiB"],
        [[one["name"], f"{one['bytes'] / 2**20:.3f}", f"{one['percent']:.1f}", str(one["values"]),
          f"{one['largest_bytes'] / 2**20:.3f}"] for one in profile["allocations"]]))
    return ms, bench["arena_bytes"] / 2**30


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--preset", default="mega200M")
    parser.add_argument("--seq", type=int, nargs="+", default=[2048, 4096, 8192])
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--target", default="h200")
    options = parser.parse_args()
    rows = []
    for dtype, reduction, flags in RUNS:
        for seq in options.seq:
            fixed = [options.build / "bin/hydrac", ROOT / "models/megalodon.mlir", f"--preset={options.preset}",
                     f"--batch={options.batch}", f"--seq={seq}", f"--precision={dtype}", f"--target={options.target}", *flags]
            folder = options.folder / f"{dtype}_{reduction}_L{seq}"
            ms, gib = measure(folder, lambda more: run(*fixed, *more),
                              lambda more: run(options.build / "bin/hydra-run", *more))
            rows.append([folder.name, f"{ms:.3f}", f"{gib:.3f}"])
    print(markdown(["run", "ms_per_step", "peak_mem_gb"], rows), end="")


main()
