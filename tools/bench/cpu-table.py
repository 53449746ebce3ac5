#!/usr/bin/env python3
"""Measures the CPU path and prints four tables in Markdown.

  tools/bench/cpu-table.py [--llmc CHECKOUT] [--build build/dev] [--threads 2]

1. A training step of a GPT-2-like model (6 layers x 384, 6 heads, 256 tokens, B x S = 4 x 256, fp32) beside
   llm.c's train_gpt2.c, which is built from CHECKOUT (https://github.com/karpathy/llm.c) with its usual flags
   and starts from the same parameters on the same tokens: the losses must agree. Both sides take turns.
2. Generated kernels beside the memory bandwidth of the machine (kernel-bench).
3. Predicted beside measured time by class of operation.
4. A CS336 model of the same size without each pass, and in bf16.

Needs only the standard library, and gcc for llm.c.
"""
import argparse
import array
import json
import os
import pathlib
import random
import re
import statistics
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
B, S, V, L, H, D = 4, 256, 256, 6, 6, 384
ROUNDS, STEPS = 3, 5

# Parameters in the order of llm.c's checkpoint: our name, shape, whether each layer has one.
PARAMETERS = [
    ("wte", [V, D], False), ("wpe", [S, D], False),
    ("ln1_w", [D], True), ("ln1_b", [D], True), ("qkv", [3 * D, D], True), ("qkv_b", [3 * D], True),
    ("proj", [D, D], True), ("proj_b", [D], True), ("ln2_w", [D], True), ("ln2_b", [D], True),
    ("fc", [4 * D, D], True), ("fc_b", [4 * D], True), ("out", [D, 4 * D], True), ("out_b", [D], True),
    ("lnf_w", [D], False), ("lnf_b", [D], False),
]


def floats(count):
    return array.array("f", [random.gauss(0, 0.02) for _ in range(count)]).tobytes()


def make_values():
    """(name, dtype, shape, bytes) of all parameters, and the tokens."""
    random.seed(0)
    tensors = []
    for name, shape, layered in PARAMETERS:
        count = 1
        for size in shape:
            count *= size
        for layer in range(L if layered else 1):
            tensors.append((f"layers.{layer}.{name}" if layered else name, "F32", shape, floats(count)))
    return tensors, [random.randrange(V) for _ in range(B * S + 1)]  # one batch, whatever the shuffle


def write_safetensors(path, tensors):
    header, offset = {}, 0
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[3] for t in tensors))


def make_hydra(build, folder, parameters, tokens):
    def ids(first):
        return array.array("i", tokens[first : first + B * S]).tobytes()

    write_safetensors(folder / "in.safetensors", parameters + [
        ("tokens", "I32", [B, S], ids(0)), ("labels", "I32", [B, S], ids(1))])
    subprocess.run([build / "bin/hydrac", ROOT / "models/gpt2.mlir", "--preset=bytes", f"--batch={B}",
                    f"--seq={S}", "--no-clip", "--lr=1e-4", "-o", folder / "plan.fb"], check=True)


def run_hydra(build, folder, threads, *flags):
    return subprocess.run([build / "bin/hydra-run", folder / "plan.fb", "--inputs", folder / "in.safetensors",
                           f"--threads={threads}", *flags], check=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def make_llmc(checkout, folder, parameters, tokens):
    source = (checkout / "train_gpt2.c").read_text()
    source, count = re.subn(r"int T = 64;", f"int T = {S};", source)
    if count != 1:
        sys.exit(f"cpu-table: {checkout}/train_gpt2.c has no line 'int T = 64;'")
    (folder / "train_gpt2.c").write_text(source)
    subprocess.run(["gcc", "-Ofast", "-march=native", "-fopenmp", "-Wno-unused-result", "-I", checkout,
                    "train_gpt2.c", "-lm", "-o", "train_gpt2"], cwd=folder, check=True)
    header = [20240326, 3, S, V, L, H, D, V]
    (folder / "gpt2_124M.bin").write_bytes(struct.pack("256i", *header, *[0] * (256 - len(header))) +
                                           b"".join(t[3] for t in parameters))
    header = [20240520, 1, len(tokens)]
    data = struct.pack("256i", *header, *[0] * (256 - len(header))) + array.array("H", tokens).tobytes()
    place = folder / "dev/data/tinyshakespeare"
    place.mkdir(parents=True)
    for part in ("train", "val"):
        (place / f"tiny_shakespeare_{part}.bin").write_bytes(data)


def run_llmc(folder, threads):
    """Losses and milliseconds of the first steps."""
    environment = dict(os.environ, OMP_NUM_THREADS=str(threads))
    with subprocess.Popen(["stdbuf", "-oL", "./train_gpt2"], cwd=folder, env=environment, text=True,
                          stdout=subprocess.PIPE) as process:
        steps = []
        for line in process.stdout:
            if match := re.match(r"step \d+: train loss ([\d.]+) \(took ([\d.]+) ms\)", line):
                steps.append((float(match[1]), float(match[2])))
                if len(steps) == STEPS + 1:
                    break
        process.kill()
    return steps


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    names = re.findall(r"model name\s*: (.*)", text)
    has = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if f" {flag}" in text]
    return f"{len(names)} x {names[0]} ({', '.join(has)})"


def compare(build, folder, threads, checkout):
    parameters, tokens = make_values()
    make_hydra(build, folder, parameters, tokens)
    first = float(re.search(r"step +1 +loss ([\d.]+)", run_hydra(build, folder, threads, "--steps=1"))[1])
    if checkout:
        make_llmc(checkout, folder, parameters, tokens)
    ours, theirs = [], []
    for _ in range(ROUNDS):
        text = run_hydra(build, folder, threads, f"--bench={STEPS}")
        ours.append(float(re.search(r"\n +([\d.]+)", text)[1]))
        if checkout:
            steps = run_llmc(folder, threads)
            if abs(steps[0][0] - first) > 1e-4:
                sys.exit(f"cpu-table: the first losses differ: llm.c {steps[0][0]}, Hydra {first}")
            theirs.append(statistics.median(ms for _, ms in steps[1:]))
    print("| who | ms/step | rounds | first loss |\n|---|---:|---|---:|")
    rows = [("Hydra", ours)] + ([("llm.c, gcc -Ofast -march=native -fopenmp", theirs)] if checkout else [])
    for who, times in rows:
        print(f"| {who} | {statistics.median(times):.1f} | "
              f"{', '.join(f'{t:.1f}' for t in times)} | {first:.4f} |")
    if checkout:
        print(f"\nHydra is {statistics.median(theirs) / statistics.median(ours):.2f} times as fast.")


def predicted(build, folder, threads):
    text = run_hydra(build, folder, threads, "--profile=table", f"--bench={STEPS}")
    rows = [line.strip() for line in text[text.index("  class ") :].split("\n\n")[0].splitlines()]
    print("| " + " | ".join(re.split(r"  +", rows[0])) + " |\n|---" + "|---:" * 7 + "|")
    for row in rows[1:]:
        print("| " + " | ".join(row.split()) + " |")


def without_passes(build, folder, threads):
    """The whole step without each pass that changes it: the shortest of steps that took turns with all passes."""
    model = [build / "bin/hydrac", ROOT / "models/cs336.mlir", "--preset=tiny", "--set", f"D={D},H={H},L={L},F=1024,V={V}",
             f"--batch={B}", f"--seq={S}", "--no-clip"]

    def output(*command):
        return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout

    def shortest(name):
        text = output(build / "bin/hydra-run", folder / name, f"--threads={threads}", f"--bench={STEPS}")
        return float(re.search(r"\n +[\d.]+ +[\d.]+ +[\d.]+ +([\d.]+)", text)[1])

    def steps(name):
        return output(build / "bin/hydra-inspect", folder / name, "--steps")

    output(*model, "-o", folder / "all.fb")
    names = [line.split()[0] for line in output(model[0], "--list-passes").splitlines() if " required " not in line]
    print("| | ms/step | all passes | ratio |\n|---|---:|---:|---:|")
    for name, flags in [(f"without {n}", [f"--disable-pass={n}"]) for n in names] + [("bf16", ["--precision=bf16"])]:
        output(*model, *flags, "-o", folder / "other.fb")
        if steps("other.fb") == steps("all.fb"):
            continue
        times = [(shortest("other.fb"), shortest("all.fb")) for _ in range(ROUNDS)]
        other, every = (min(column) for column in zip(*times))
        print(f"| {name} | {other:.1f} | {every:.1f} | {other / every:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--llmc", type=pathlib.Path, help="a checkout of llm.c (default: no comparison)")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/dev")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    build = options.build.resolve()
    print(f"Machine: {machine()}; {options.threads} threads.\n")
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print(f"## GPT-2-like, {L} x {D}, {H} heads, V={V}, B x S = {B} x {S}, fp32\n")
        compare(build, folder, options.threads, options.llmc and options.llmc.resolve())
        print("\n## Predicted and measured, the same step\n")
        predicted(build, folder, options.threads)
        print("\n## Without each pass, and in bf16\n")
        without_passes(build, folder, options.threads)
    print("\n## Generated kernels\n", flush=True)
    text = subprocess.run([build / "bin/kernel-bench", f"--threads={options.threads}"], check=True, text=True,
                          stdout=subprocess.PIPE).stdout.strip().splitlines()
    print("| kernel | ms | GB/s | of copy | of triad |\n|---|---:|---:|---:|---:|")
    for line in text[3:]:
        print("| " + " | ".join(line.split()) + " |")


main()
