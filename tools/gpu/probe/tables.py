#!/usr/bin/env python3
"""The tables of a links.json that link-probe wrote, as Markdown. Usage: tables.py links.json"""
import json
import sys

data = json.load(open(sys.argv[1]))
times = {}  # (section, operation, bytes, method, mode): row
for row in data["rows"]:
    times[row["section"], row["operation"], row["bytes"], row["method"], row["mode"]] = row


def size(count):
    return f"{count >> 20} MiB" if count >= 1 << 20 else f"{count >> 10} KiB"


def number(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def cell(row, rate=True):
    if row is None or row.get("us") is None:
        return "–"
    text = number(row["us"])
    if rate and row["bus_gb_s"]:
        text += f" / {row['bus_gb_s']:.0f}"
    return text + (" WRONG" if row["wrong"] else "")


def table(title, head, lines):
    if lines:
        print(f"\n{title}\n\n| | {' | '.join(head)} |\n|---|{'---:|' * len(head)}")
        for line in lines:
            print(f"| {' | '.join(line)} |")


def pivot(section, title):
    """A line for each operation and size, a column for each method and mode, in the order of their measurement."""
    keys = [key for key in times if key[0] == section]
    columns, lines = list(dict.fromkeys(key[3:] for key in keys)), []
    for operation, count in dict.fromkeys(key[1:3] for key in keys):
        cells = [cell(times.get((section, operation, count, *column))) for column in columns]
        lines.append([f"{operation} {size(count)}", *cells])
    table(title, [", ".join(column) for column in columns], lines)


machine = data["machine"]
if machine:
    gpus = machine["gpus"]
    links = " ".join("?" if gpu["nvlinks"] < 0 else str(gpu["nvlinks"]) for gpu in gpus)
    nccl = machine["nccl"]
    print(
        f"{len(gpus)} × {gpus[0]['name']}, driver {machine['driver']}, CUDA {machine['cuda'] // 1000}."
        f"{machine['cuda'] % 1000 // 10}, NCCL {nccl // 10000}.{nccl // 100 % 100}.{nccl % 100}, "
        f"NCCL_NVLS_ENABLE={machine['nccl_nvls_enable']}; active NVLinks of each GPU: {links}"
    )
pivot("transfer", "us of one call / bus GB/s; sizes of the gathered buffer, or of what a rank sends in all_to_all")
alone = times.get(("overlap", "matmul", 0, "cuBLASLt", "matmul"))
lines = []
for section, operation, count, method, mode in times:
    if section == "overlap" and mode == "alone":
        row, under, matmul = (
            times.get((section, operation, count, method, mode)) for mode in ("alone", "with matmul", "matmul")
        )
        slower = ["–", "–"]
        if row.get("us") and under and under.get("us") and matmul and matmul.get("us"):
            slower = [f"{under['us'] / row['us']:.2f}", f"{matmul['us'] / alone['us']:.3f}"]
        lines.append([f"{operation} {size(count)}, {method}", cell(row), cell(under), *slower])
if alone:
    tflops = 2 * 8192**3 / alone["us"] / 1e6
    table(
        f"Beside a bf16 matmul of 8192 × 8192 × 8192, alone {number(alone['us'])} us ({tflops:.0f} TFLOP/s): us / bus GB/s, "
        "means over the time when both ran",
        ["alone", "with matmul", "times as long", "matmul, times as long"],
        lines,
    )
pivot("reduce", "us of a reduction to shards, captured / bus GB/s; f32 sums in rank order but for ncclReduceScatter; "
      "sizes of what a rank sends")
pivot("replay", "us of one replay: two small kernels, all_gather, all_to_all; data new in every replay, checked after "
      "the first, the middle and the last")
for method, why in dict.fromkeys((row["method"], row["missing"]) for row in data["rows"] if "missing" in row):
    print(f"\n{method}: not here: {why}")
if data["failure"]:
    print(f"\nlink-probe: {data['failure']}")
