#!/usr/bin/env python3
"""Makes goldens of GPT-2 whose scores are divided by the number of their layer, and with each activation, by its formulas,
written out in plain Python. The case without either shows that these are the formulas of goldens/gpt2, which transformers
computed.

For every case, OUT/<case>/ gets config.json, model.safetensors with random weights under the names of transformers, and
golden.safetensors as make-goldens.py has it, without gradients.

Usage: make-gpt2.py OUT
"""
import math
import sys

from formulas import VOCABULARY, add, dot, rounded, rows_of, softmax, write_goldens

BASE = dict(architectures=["GPT2LMHeadModel"], model_type="gpt2", vocab_size=VOCABULARY, n_embd=16, n_layer=3, n_head=4,
            n_positions=32, activation_function="gelu_new", layer_norm_epsilon=1e-5, initializer_range=0.02,
            scale_attn_weights=True, scale_attn_by_inverse_layer_idx=False, dtype="float32")

# As transformers has them.
ACTIVATIONS = {
    "gelu_new": lambda x: 0.5 * x * (1.0 + math.tanh(math.sqrt(2.0 / math.pi) * (x + 0.044715 * x ** 3))),
    "silu": lambda x: x * sigmoid(x),
    "gelu": lambda x: 0.5 * x * (1.0 + math.erf(x / math.sqrt(2.0))),
    "gelu_10": lambda x: min(ACTIVATIONS["gelu"](x), 10.0),
    "quick_gelu": lambda x: x * sigmoid(1.702 * x),
    "relu": lambda x: max(x, 0.0),
    "relu2": lambda x: max(x, 0.0) ** 2,
    "relu6": lambda x: min(max(x, 0.0), 6.0),
    "leaky_relu": lambda x: x if x > 0.0 else 0.01 * x,
    "sigmoid": lambda x: sigmoid(x),
    "tanh": math.tanh,
    "linear": lambda x: x,
}

CASES = {
    "gpt2-plain": dict(BASE, n_layer=2),
    "gpt2-by-layer": dict(BASE, scale_attn_by_inverse_layer_idx=True),
    "gpt2-by-layer-alone": dict(BASE, scale_attn_by_inverse_layer_idx=True, scale_attn_weights=False),
} | {f"gpt2-{name}": dict(BASE, n_layer=1, activation_function=name) for name in ACTIVATIONS if name != "gelu_new"}


def shapes(c):
    hidden = c["n_embd"]
    yield "transformer.wte.weight", [VOCABULARY, hidden]
    yield "transformer.wpe.weight", [c["n_positions"], hidden]
    names = [f"transformer.h.{layer}." for layer in range(c["n_layer"])]
    norms = [at + norm for at in names for norm in ("ln_1", "ln_2")] + ["transformer.ln_f"]
    for norm in norms:
        yield norm + ".weight", [hidden]
        yield norm + ".bias", [hidden]
    for at in names:
        for name, columns, rows in (("attn.c_attn", hidden, 3 * hidden), ("attn.c_proj", hidden, hidden),
                                    ("mlp.c_fc", hidden, 4 * hidden), ("mlp.c_proj", 4 * hidden, hidden)):
            yield f"{at}{name}.weight", [columns, rows]
            yield f"{at}{name}.bias", [rows]


def make_weights(c, r):
    """{name: (shape, numbers of f32)}"""
    weights = {}
    for name, shape in shapes(c):
        mean = 1.0 if ".ln_" in name and name.endswith(".weight") else 0.0
        # Scores differ enough that their scale is seen.
        scale = 0.2 if len(shape) == 1 else 0.6 if "c_attn" in name else 0.5 if "wte" in name else 0.25
        if "c_fc" in name and c["activation_function"] in ("gelu_10", "relu6"):
            scale = 1.5  # beyond their bounds
        weights[name] = shape, [rounded(mean + scale * r.gauss(0.0, 1.0)) for _ in range(math.prod(shape))]
    return weights


class Model:
    def __init__(self, config, weights):
        self.c, self.rows = config, rows_of(weights)
        # Matrices are stored as [in, out].
        self.columns = {name: list(zip(*rows)) for name, rows in self.rows.items() if ".c_" in name}

    def linear(self, name, x):
        return [dot(column, x) + b for column, b in zip(self.columns[name + ".weight"], self.rows[name + ".bias"][0])]

    def norm(self, name, x):
        mean = math.fsum(x) / len(x)
        centred = [a - mean for a in x]
        scale = 1.0 / math.sqrt(dot(centred, centred) / len(x) + self.c["layer_norm_epsilon"])
        return [a * scale * w + b
                for a, w, b in zip(centred, self.rows[name + ".weight"][0], self.rows[name + ".bias"][0])]

    def attention(self, at, layer, xs):
        c = self.c
        width = c["n_embd"] // c["n_head"]
        scale = 1.0 / math.sqrt(width) if c["scale_attn_weights"] else 1.0
        if c["scale_attn_by_inverse_layer_idx"]:
            scale /= layer + 1
        joined = [self.linear(at + "c_attn", x) for x in xs]
        part = lambda t, which, head: joined[t][which * c["n_embd"] + head * width:][:width]
        out = []
        for t in range(len(xs)):
            row = []
            for head in range(c["n_head"]):
                shares = softmax([scale * dot(part(t, 0, head), part(s, 1, head)) for s in range(t + 1)])
                values = [part(s, 2, head) for s in range(t + 1)]
                row += [dot(shares, column) for column in zip(*values)]
            out.append(self.linear(at + "c_proj", row))
        return out

    def logits(self, tokens):
        table, places = self.rows["transformer.wte.weight"], self.rows["transformer.wpe.weight"]
        xs = [add(table[token], places[t]) for t, token in enumerate(tokens)]
        for layer in range(self.c["n_layer"]):
            at = f"transformer.h.{layer}."
            mixed = self.attention(at + "attn.", layer, [self.norm(at + "ln_1", x) for x in xs])
            xs = [add(x, m) for x, m in zip(xs, mixed)]
            activated = ACTIVATIONS[self.c["activation_function"]]
            inner = [[activated(a) for a in self.linear(at + "mlp.c_fc", self.norm(at + "ln_2", x))] for x in xs]
            xs = [add(x, self.linear(at + "mlp.c_proj", a)) for x, a in zip(xs, inner)]
        return [[dot(row, x) for row in table] for x in (self.norm("transformer.ln_f", x) for x in xs)]


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x))


if __name__ == "__main__":
    write_goldens(sys.argv[1], CASES, make_weights, Model)
