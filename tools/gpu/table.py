#!/usr/bin/env python3
"""table.py results.txt: the rows that run.sh measured, ours beside PyTorch's and XLA's."""
import json
import sys

ours, theirs, ceiling, own, others, streams, torchStreams, families, texts, torchTexts = {}, {}, None, {}, {}, {}, {}, {}, {}, {}
for line in open(sys.argv[1]):
    if line.startswith("hydra "):
        _, name, ms, gib = line.split()
        ours[name] = (float(ms), float(gib))
    elif line.startswith("attention "):
        _, name, *us = line.split()
        own[name] = [float(x) for x in us]
    elif line.startswith("torch attention "):
        _, _, name, backend, *us = line.split()
        others.setdefault(name, {})[backend] = [float(x) for x in us]
    elif line.startswith("stream "):
        _, name, us = line.split()
        streams[name] = float(us)
    elif line.startswith("torch stream "):
        row = json.loads(line.removeprefix("torch stream "))
        torchStreams[row["kernel"]] = row
    elif line.startswith("family "):
        _, name, ms = line.split()
        families[name] = float(ms)
    elif line.startswith("torch text "):
        _, _, name, batch, ms = line.split()
        torchTexts[name, batch] = float(ms)
    elif line.startswith("text "):
        _, name, batch, *ms = line.split()
        texts[name, batch] = [float(x) for x in ms]
    elif line.startswith("matmul ceiling"):
        ceiling = line.split()[2]
    elif line.startswith("{"):
        row = json.loads(line)
        if "ms" in row:
            theirs[row["peer"], row["row"]] = row
        else:
            print(f"{row['peer']} {row['row']}: {row['error']}", file=sys.stderr)
if ceiling:
    print(f"matmul rate of PyTorch in the same run: {ceiling} TFLOP/s")
print("| row | ms | GiB | XLA ms | speed-up | GiB | PyTorch ms (mode) | speed-up | GiB |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|")
for name, (ms, gib) in ours.items():
    cells = [name, f"{ms:.2f}", f"{gib:.2f}"]
    for peer in ("xla", "torch"):
        other = theirs.get((peer, name.rsplit("-", 1)[0]))  # a plan's name ends with what it makes again
        cells += ["", "", ""] if other is None else [
            ", ".join(f"{x:.2f}" for x in other["ms"]) + (f" ({other['mode']})" if peer == "torch" else ""),
            f"{min(other['ms']) / ms:.2f}", f"{other['peak_gib']:.2f}"]
    print("| " + " | ".join(cells) + " |")
if own:
    print("\n| B, H, Hk, S, D | forward us: own | flash | cuDNN | own to cuDNN | backward us: own | flash | cuDNN | own to cuDNN |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|")
    for name, us in own.items():
        row = [name.replace("-", ", ")]
        for i in (0, 1):
            flash, cudnn = (others.get(name, {}).get(b, [None, None])[i] for b in ("flash", "cudnn"))
            row += [f"{us[i]:.0f}"] + [f"{x:.0f}" if x else "" for x in (flash, cudnn)]
            row += [f"{cudnn / us[i]:.2f}" if cudnn else ""]
        print("| " + " | ".join(row) + " |")
if streams:
    print("\n| kernel, 65536 x 4096 | us | share of a copy of as many bytes | torch.compile us | its share |")
    print("|---|---:|---:|---:|---:|")
    for name, us in streams.items():
        row = torchStreams.get(name)
        # The copy's time: of the same bytes at the copy's rate in the same run.
        copy = row["us"] * row["tb_s"] / row["copy_tb_s"] if row else None
        print(f"| {name} | {us:.1f} |" + (f" {copy / us:.2f} | {row['us']:.1f} | {row['share']:.2f} |" if row else " | | |"))
if families:
    print("\n| model, B x S | ms |\n|---|---:|")
    for name, ms in families.items():
        print(f"| {name} | {ms:.2f} |")
if texts:
    print("\n| shape | sequences | ms a token of each | full context | tok/s | transformers ms | speed-up |\n|---|---:|---:|---:|---:|---:|---:|")
    for (name, batch), (written, step) in texts.items():
        other = torchTexts.get((name, batch))
        print(f"| {name} | {batch} | {written:.3f} | {step:.3f} | {1e3 * int(batch) / written:,.0f} |"
              + (f" {other:.2f} | {other / written:.2f} |" if other else " | |"))
