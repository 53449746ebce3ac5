#!/usr/bin/env python3
"""Losses of the run of run.sh and of its peer, over the tokens trained on.

Usage: curves.py LOG.jsonl PEER.jsonl [--svg FILE]    logs of hydra-run and of torch_train.py

Prints held-out losses at equal tokens as Markdown and draws them, and the running mean of the training loss.
"""
import argparse
import json


def read(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


def drawing(series, most, low, high):
    """Lists of (tokens, loss) by name and colour, as SVG."""
    width, height, left, bottom, top, right = 720, 320, 48, 48, 16, 170
    x = lambda tokens: left + tokens / most * (width - left - right)
    y = lambda loss: height - bottom - (min(loss, high) - low) / (high - low) * (height - bottom - top)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
           f'<rect width="{width}" height="{height}" fill="#ffffff"/>']
    for i in range(int((high - low) / 0.5) + 1):
        loss = low + 0.5 * i
        out += [f'<line x1="{left}" x2="{width - right}" y1="{y(loss):.1f}" y2="{y(loss):.1f}" stroke="#dddddd"/>',
                f'<text x="{left - 6}" y="{y(loss) + 4:.1f}" text-anchor="end" fill="#333333">{loss:.1f}</text>']
    digits = 0 if most >= 20e6 else 1
    for tokens in (most * i / 5 for i in range(6)):
        out += [f'<text x="{x(tokens):.1f}" y="{height - bottom + 18}" text-anchor="middle" fill="#333333">{tokens / 1e6:,.{digits}f}</text>']
    out += [f'<text x="{(left + width - right) / 2}" y="{height - 8}" text-anchor="middle" fill="#333333">million tokens</text>',
            f'<text transform="translate(14 {height / 2}) rotate(-90)" text-anchor="middle" fill="#333333">nats a token</text>']
    for i, (name, colour, points) in enumerate(series):
        line = " ".join(f"{x(tokens):.1f},{y(loss):.1f}" for tokens, loss in points)
        out += [f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>',
                f'<rect x="{width - right + 12}" y="{top + 20 * i}" width="12" height="12" fill="{colour}"/>',
                f'<text x="{width - right + 30}" y="{top + 20 * i + 11}" fill="#333333">{name}</text>']
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("log")
    parser.add_argument("peer")
    parser.add_argument("--svg")
    args = parser.parse_args()
    events, peer = read(args.log), read(args.peer)
    batch = next(e["tokens_per_step"] for e in events if e["event"] == "start")
    own = {e["step"]: e["loss_nats"] for e in events if e["event"] == "eval"}
    other = {e["step"]: e["held_out"] for e in peer}
    print("| steps | million tokens | Hydra | PyTorch |\n|---:|---:|---:|---:|")
    for step in sorted(own):
        print(f"| {step} | {step * batch / 1e6:.1f} | {own[step]:.3f} | {format(other[step], '.3f') if step in other else ''} |")
    if args.svg:
        # What was done again behind the last checkpoint stands in the log twice.
        means = {e["step"] * batch: e["loss_mean"] for e in events if e["event"] == "step" and e["step"] % 10 == 0}
        series = [("Hydra, trained on", "#cccccc", sorted(means.items())),
                  ("Hydra, held out", "#0072b2", [(step * batch, loss) for step, loss in sorted(own.items())]),
                  ("PyTorch, held out", "#d55e00", [(step * batch, loss) for step, loss in sorted(other.items())])]
        with open(args.svg, "w") as file:
            file.write(drawing(series, max(own) * batch, 1.0, 5.0))


if __name__ == "__main__":
    main()
