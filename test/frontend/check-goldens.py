#!/usr/bin/env python3
"""Imports every golden model and holds it against what transformers computed: see make-goldens.py.

Usage: check-goldens.py GOLDENS WORK [CASE...]     the programs are looked up in PATH

Of each case: logits and loss, gradients under the names of transformers, tokens of greedy decoding, by the
oracle and by a compiled plan; and the exported weights, bit for bit those that were imported.
"""
import array
import json
import math
import pathlib
import re
import struct
import subprocess
import sys

LOGITS, GRADIENTS = 1e-5, 1e-4  # relative L2 distances that are allowed
TYPES = {"F32": "f", "F64": "d", "I32": "i"}
# Rotary positions that depend on the length of the text: each step of decoding has others.
BY_LENGTH = {"llama-dynamic", "phi3-longrope"}
# Names of files that transformers 5 has under others in memory, where gradients are.
IN_MEMORY = {"embed_out.weight": "lm_head.weight"}


def read(path):
    """{name: (dtype, shape, bytes)}"""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    header.pop("__metadata__", None)
    return {name: (entry["dtype"], entry["shape"],
                   data[8 + size + entry["data_offsets"][0]:8 + size + entry["data_offsets"][1]])
            for name, entry in header.items()}


def write(path, tensors):
    header, at = {}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(t[2] for t in tensors.values()))


def values(tensor):
    return array.array(TYPES[tensor[0]], tensor[2])


def distance(out, reference):
    difference = math.fsum((a - b) ** 2 for a, b in zip(out, reference))
    size = math.fsum(b * b for b in reference)
    return math.sqrt(difference / max(size, 1e-30))


def transposed(shape, numbers):
    rows, columns = shape
    return [numbers[r * columns + c] for c in range(columns) for r in range(rows)]


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def names(model, layers):
    """{name of a parameter: (name elsewhere, whether transposed)}, from the text of a model."""
    table, stack = {}, False
    for line in model.read_text().splitlines():
        stack = (stack or "hydra.stack" in line) and line != "  }"
        found = re.search(r'hydra\.param @(\S+) .*from "(.*)"( transposed)?$', line)
        if not found:
            continue
        name, origin, turned = found.groups()
        for layer in range(layers) if stack else [None]:
            prefix = "" if layer is None else f"layers.{layer}."
            table[prefix + name] = (origin.replace("{layer}", str(layer)), bool(turned))
    return table


def slices(origin, golden):
    """The names for all numbers that {row} stands for, or the one name."""
    if "{row}" not in origin:
        return [origin]
    names = []
    while f"grad.{(name := origin.replace('{row}', str(len(names))))}" in golden:
        names.append(name)
    return names


class Case:
    def __init__(self, goldens, work, name):
        self.name, self.source = name, goldens / name
        self.work = work / name
        self.work.mkdir(parents=True, exist_ok=True)
        self.golden = read(self.source / "golden.safetensors")
        self.model, self.weights = self.work / "model.mlir", self.work / "weights.safetensors"
        self.problems, self.worst = [], {}

    def near(self, what, out, reference, limit):
        if len(out) != len(reference):
            self.problems.append(f"{what} has {len(out)} numbers; expected {len(reference)}")
            return
        far = distance(out, reference)
        kind = "gradients" if "grad." in what else "logits"
        self.worst[kind] = max(self.worst.get(kind, 0.0), far)
        if not far <= limit:
            self.problems.append(f"{what} is {far:.3g} off; expected at most {limit}")

    def evaluate(self, label, flags, inputs, by):
        """The results of the oracle, or of a plan."""
        given, out = self.work / f"{label}.in.safetensors", self.work / f"{label}.{by}.safetensors"
        write(given, {**self.parameters, **inputs})
        rows, length = inputs["tokens"][1]
        bind = [self.model, f"--preset={self.name}", f"--batch={rows}", f"--seq={length}"]
        if by == "oracle":
            entry = [] if "--mode=grad" in flags else ["--entry=logits"]
            run("hydra-interpret", *bind, *flags, *entry, "--inputs", given, "--outputs", out)
        else:
            plan = self.work / f"{label}.fb"
            program = [] if "--mode=grad" in flags else ["--program=forward:logits"]
            run("hydrac", *bind, *(flags or ["--mode=forward"]), *program, "-o", plan)
            run("hydra-run", plan, "--inputs", given, "--outputs", out)
        return {name: values(tensor) for name, tensor in read(out).items()}

    def compare(self, by):
        g = self.golden
        logits = self.evaluate("logits", [], {"tokens": g["tokens"]}, by)["logits"]
        self.near(f"{by}: logits", logits, values(g["logits"]), LOGITS)

        results = self.evaluate("grad", ["--mode=grad"], {"tokens": g["tokens"], "labels": g["labels"]}, by)
        self.near(f"{by}: loss", results["loss"], values(g["loss"]), LOGITS)
        if not any(name.startswith("grad.") for name in g):
            return self.decode(by)
        table = names(self.model, json.loads((self.source / "config.json").read_text()).get(
            "num_hidden_layers") or json.loads((self.source / "config.json").read_text())["n_layer"])
        used = set()
        for name, (origin, turned) in table.items():
            parts = [f"grad.{IN_MEMORY.get(o, o)}" for o in slices(origin, g)]
            used.update(parts)
            shape, expected = g[parts[0]][1], [x for part in parts for x in values(g[part])]
            self.near(f"{by}: grad.{name}", results["grad." + name],
                      transposed(shape, expected) if turned else expected, GRADIENTS)
        if missing := {n for n in g if n.startswith("grad.")} - used:
            self.problems.append(f"no gradients for {sorted(missing)}")

        self.decode(by)

    def decode(self, by):
        """A longer row, of which each token is the best one behind those before it."""
        g = self.golden
        vocabulary = g["logits"][1][2]
        long = self.evaluate("long", [], {"tokens": g["long.tokens"]}, by)["logits"]
        self.near(f"{by}: logits of a longer row", long, values(g["long.logits"]), LOGITS)
        if self.name in BY_LENGTH:
            return
        tokens = list(values(g["greedy"]))
        prompt = len(tokens) - 24
        for i in range(prompt, len(tokens)):
            row = long[(i - 1) * vocabulary:i * vocabulary]
            if max(range(vocabulary), key=row.__getitem__) != tokens[i]:
                self.problems.append(f"{by}: token {i} differs from {tokens[i]}")

    def generate(self):
        """The same tokens by programs that read on, beside another text."""
        if self.name in BY_LENGTH:
            return
        plan = self.work / "generate.fb"
        tokens = [int(token) for token in values(self.golden["greedy"])]
        prompt = tokens[:len(tokens) - 24]
        run("hydrac", self.model, f"--preset={self.name}", "--mode=generate", "--batch=2",
            f"--context={len(tokens)}", "--prefill=5", "-o", plan)
        texts = [" ".join(map(str, ids)) for ids in (prompt, prompt[:2])]
        done = subprocess.run(["hydra-run", plan, "--weights", self.weights, "--tokenizer=ids", "--temperature", "0",
                               "--tokens", "24", "--generate", texts[0], "--generate", texts[1]],
                              capture_output=True, text=True)
        if done.stdout.partition("\n")[0].split() != [str(token) for token in tokens]:
            self.problems.append(f"generated {done.stdout!r} {done.stderr!r}; expected {tokens}")

    def checkExport(self):
        """What is exported is what was imported."""
        kept, out = self.work / "kept.safetensors", self.work / "exported"
        run("hydra-import", self.source, "-o", self.work / "kept.mlir", "--weights", kept)
        run("hydra-export", kept, f"--model={self.work / 'kept.mlir'}", f"--preset={self.name}",
            f"--config={self.source / 'config.json'}", "-o", out)
        before = {}
        for file in sorted(self.source.glob("model*.safetensors")):
            before.update(read(file))
        if read(out / "model.safetensors") != before:
            self.problems.append("the exported weights are not those that were imported")
        old, new = (json.loads((d / "config.json").read_text()) for d in (self.source, out))
        if old != new:
            self.problems.append(f"the exported configuration has changed: {old} and {new}")

    def check(self):
        run("hydra-import", self.source, "-o", self.model, "--weights", self.weights, "--dtype=f32")
        self.parameters = read(self.weights)
        self.compare("oracle")
        self.compare("plan")
        self.generate()
        self.checkExport()


def main():
    goldens, work = map(pathlib.Path, sys.argv[1:3])
    failed = 0
    cases = sys.argv[3:] or sorted(p.parent.name for p in goldens.glob("*/golden.safetensors"))
    if not cases:
        sys.exit(f"{goldens}: holds no goldens")
    for name in cases:
        case = Case(goldens, work, name)
        try:
            case.check()
        except (RuntimeError, KeyError) as problem:
            case.problems.append(f"{type(problem).__name__}: {problem}")
        worst = ", ".join(f"{kind} within {far:.1g}" for kind, far in sorted(case.worst.items()))
        print(f"{name}: {'; '.join(case.problems[:5]) if case.problems else 'ok, ' + worst}")
        failed += bool(case.problems)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
