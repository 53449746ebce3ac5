#!/usr/bin/env python3
"""Makes goldens of Mixtral by its formulas, written out in plain Python: what transformers is held against itself.

For every case, OUT/<case>/ gets config.json, model.safetensors with random weights under the names of transformers, and
golden.safetensors as make-goldens.py has it, without gradients.

Usage: make-experts.py OUT
"""
import math
import sys

from formulas import VOCABULARY, add, dot, rounded, rows_of, softmax, write_goldens

BASE = dict(architectures=["MixtralForCausalLM"], model_type="mixtral", vocab_size=VOCABULARY, hidden_size=16,
            intermediate_size=24, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
            max_position_embeddings=64, rms_norm_eps=1e-5, rope_theta=1e6, hidden_act="silu", initializer_range=0.02,
            tie_word_embeddings=False, output_router_logits=False, router_aux_loss_coef=0.001, router_jitter_noise=0.0,
            attention_dropout=0.0, use_cache=True, dtype="float32", sliding_window=None)
CASES = {
    "mixtral": dict(BASE, num_local_experts=4, num_experts_per_tok=2),
    "mixtral-window": dict(BASE, num_local_experts=8, num_experts_per_tok=2, sliding_window=5, head_dim=8),
    "mixtral-one": dict(BASE, num_local_experts=3, num_experts_per_tok=1, num_hidden_layers=1),
    "mixtral-all": dict(BASE, num_local_experts=3, num_experts_per_tok=3, num_hidden_layers=1),
}


def shapes(c):
    hidden, inner, width = c["hidden_size"], c["intermediate_size"], head_width(c)
    yield "model.embed_tokens.weight", [VOCABULARY, hidden]
    for layer in range(c["num_hidden_layers"]):
        at = f"model.layers.{layer}."
        yield at + "input_layernorm.weight", [hidden]
        yield at + "post_attention_layernorm.weight", [hidden]
        for name, heads in (("q", "attention"), ("k", "key_value"), ("v", "key_value")):
            yield f"{at}self_attn.{name}_proj.weight", [c[f"num_{heads}_heads"] * width, hidden]
        yield at + "self_attn.o_proj.weight", [hidden, c["num_attention_heads"] * width]
        yield at + "block_sparse_moe.gate.weight", [c["num_local_experts"], hidden]
        for expert in range(c["num_local_experts"]):
            for name, shape in (("w1", [inner, hidden]), ("w2", [hidden, inner]), ("w3", [inner, hidden])):
                yield f"{at}block_sparse_moe.experts.{expert}.{name}.weight", shape
    yield "model.norm.weight", [hidden]
    yield "lm_head.weight", [VOCABULARY, hidden]


def head_width(c):
    return c.get("head_dim") or c["hidden_size"] // c["num_attention_heads"]


def make_weights(c, r):
    """{name: (shape, numbers of f32)}"""
    weights = {}
    for name, shape in shapes(c):
        one = len(shape) == 1
        scale = 0.2 if one else 0.5 if "embed" in name else 0.25
        weights[name] = shape, [rounded(float(one) + scale * r.gauss(0.0, 1.0)) for _ in range(math.prod(shape))]
    return weights


class Model:
    def __init__(self, config, weights):
        self.c, self.rows = config, rows_of(weights)

    def linear(self, name, x):
        return [math.fsum(a * b for a, b in zip(row, x)) for row in self.rows[name + ".weight"]]

    def norm(self, name, x):
        scale = 1.0 / math.sqrt(math.fsum(a * a for a in x) / len(x) + self.c["rms_norm_eps"])
        return [a * scale * w for a, w in zip(x, self.rows[name + ".weight"][0])]

    def turn(self, head, position):
        """Channel i and the one half a head behind it, by position * base^(-2i / width)."""
        half = len(head) // 2
        out = [0.0] * len(head)
        for i in range(half):
            angle = position * self.c["rope_theta"] ** (-i / half)
            cos, sin = math.cos(angle), math.sin(angle)
            out[i] = head[i] * cos - head[i + half] * sin
            out[i + half] = head[i + half] * cos + head[i] * sin
        return out

    def attention(self, at, xs):
        c, width = self.c, head_width(self.c)
        split = lambda x: [x[i:i + width] for i in range(0, len(x), width)]
        q = [[self.turn(h, t) for h in split(self.linear(at + "q_proj", x))] for t, x in enumerate(xs)]
        k = [[self.turn(h, t) for h in split(self.linear(at + "k_proj", x))] for t, x in enumerate(xs)]
        v = [split(self.linear(at + "v_proj", x)) for x in xs]
        group = c["num_attention_heads"] // c["num_key_value_heads"]
        window = c["sliding_window"] or len(xs)
        out = []
        for t in range(len(xs)):
            seen = range(max(0, t - window + 1), t + 1)
            joined = []
            for head in range(c["num_attention_heads"]):
                key = head // group
                shares = softmax([dot(q[t][head], k[s][key]) / math.sqrt(width) for s in seen])
                joined += [math.fsum(p * v[s][key][i] for p, s in zip(shares, seen)) for i in range(width)]
            out.append(self.linear(at + "o_proj", joined))
        return out

    def experts(self, at, x):
        shares = softmax(self.linear(at + "gate", x))
        best = sorted(range(len(shares)), key=lambda e: -shares[e])[:self.c["num_experts_per_tok"]]
        out = [0.0] * len(x)
        for e in best:
            w = f"{at}experts.{e}."
            inner = [a / (1.0 + math.exp(-a)) * b for a, b in zip(self.linear(w + "w1", x), self.linear(w + "w3", x))]
            weight = shares[e] / math.fsum(shares[b] for b in best)
            out = [a + weight * b for a, b in zip(out, self.linear(w + "w2", inner))]
        return out

    def logits(self, tokens):
        xs = [self.rows["model.embed_tokens.weight"][t] for t in tokens]
        for layer in range(self.c["num_hidden_layers"]):
            at = f"model.layers.{layer}."
            mixed = self.attention(at + "self_attn.", [self.norm(at + "input_layernorm", x) for x in xs])
            xs = [add(x, m) for x, m in zip(xs, mixed)]
            xs = [add(x, self.experts(at + "block_sparse_moe.", self.norm(at + "post_attention_layernorm", x)))
                  for x in xs]
        return [self.linear("lm_head", self.norm("model.norm", x)) for x in xs]


if __name__ == "__main__":
    write_goldens(sys.argv[1], CASES, make_weights, Model)
