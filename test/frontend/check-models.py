#!/usr/bin/env python3
"""The model files of the tree for architectures of others: with a golden's sizes and weights they compute what
transformers computes of it, and the weights come back as they were.

Usage: check-models.py MODELS GOLDENS WORK     the programs are looked up in PATH
"""
import importlib
import pathlib
import sys

goldens = importlib.import_module("check-goldens")

# Case, which is a model's name as well: its sizes, and what that model computes otherwise by default.
CASES = {
    "llama": "D = 16, F = 24, L = 2, H = 4, Hk = 2, V = 61, rope = 1.0e4",
    "gpt2": "D = 16, L = 2, H = 4, P = 32, V = 61",
}


def main():
    models, source, work = map(pathlib.Path, sys.argv[1:4])
    work.mkdir(parents=True)
    for case, sizes in CASES.items():
        golden = goldens.read(source / case / "golden.safetensors")
        model, weights, out = work / f"{case}.mlir", work / f"{case}.safetensors", work / case
        tiny, text = "  hydra.preset @tiny ", (models / model.name).read_text()
        model.write_text(text.replace(tiny, f"  hydra.preset @golden {{{sizes}}}\n{tiny}", 1))
        bind = [f"--model={model}", "--preset=golden"]
        goldens.run("hydra-import", source / case / "model.safetensors", *bind, "--weights", weights)
        given, results = work / "in.safetensors", work / "out.safetensors"
        for entry, inputs in (("logits", ["tokens"]), ("loss", ["tokens", "labels"])):
            goldens.write(given, {**goldens.read(weights), **{name: golden[name] for name in inputs}})
            goldens.run("hydra-interpret", model, "--preset=golden", "--batch=2", "--seq=12", f"--entry={entry}",
                        "--inputs", given, "--outputs", results)
            far = goldens.distance(goldens.values(goldens.read(results)[entry]), goldens.values(golden[entry]))
            if not far <= goldens.LOGITS:
                sys.exit(f"{case}: {entry} is {far:.3g} off; expected at most {goldens.LOGITS}")
        goldens.run("hydra-export", weights, *bind, f"--config={source / case / 'config.json'}", "-o", out)
        if goldens.read(out / "model.safetensors") != goldens.read(source / case / "model.safetensors"):
            sys.exit(f"{case}: the exported weights are not those that were imported")
        print(f"{case}: ok")


if __name__ == "__main__":
    main()
