#!/usr/bin/env python3
"""Checkpoints of the programs that Hydra's own models come from, as those write them, imported and evaluated.

Usage: check-own.py MODELS WORK     MODELS: the folder of model files; the programs are looked up in PATH

HYDRA, app4's TTT and megalodon-jax: the reference cases of their specification under the names and shapes of the
originals, and its losses. megalodon-hf: its first form, computed here.
"""
import cmath
import json
import math
import pathlib
import struct
import subprocess
import sys
from array import array

MASK = (1 << 64) - 1


def mix(seed, i):
    z = (seed + (i + 1) * 0x9E3779B97F4A7C15) & MASK
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & MASK
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & MASK
    return z ^ z >> 31


def fill(seed, shape, base, amplitude):
    return shape, [base + amplitude * ((mix(seed, i) >> 40) * 2.0**-23 - 1) for i in range(math.prod(shape))]


def tokens(rows, length, vocabulary):
    all_ = [[(mix(99, b * (length + 1) + s) >> 33) % vocabulary for s in range(length + 1)] for b in range(rows)]
    return {
        "tokens": ([rows, length], [t for row in all_ for t in row[:-1]]),
        "labels": ([rows, length], [t for row in all_ for t in row[1:]]),
    }


def write(path, tensors, metadata=None):
    header, data = {"__metadata__": metadata} if metadata else {}, b""
    for name, (shape, numbers) in tensors.items():
        whole = name in ("tokens", "labels") or name.endswith("_step")
        part = array("i" if whole else "d", numbers).tobytes()
        header[name] = {"dtype": "I32" if whole else "F64", "shape": shape, "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8 : 8 + size])
    header.pop("__metadata__", None)
    return {
        name: (entry["shape"], list(array({"F64": "d", "I32": "i"}[entry["dtype"]], data[8 + size + entry["data_offsets"][0] : 8 + size + entry["data_offsets"][1]])))
        for name, entry in header.items()
    }


def run(*command):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def evaluate(work, model, weights, inputs, entry, *flags):
    given, out = work / "in.safetensors", work / "out.safetensors"
    write(given, {**read(weights), **inputs})
    rows, length = inputs["tokens"][0]
    run("hydra-interpret", model, f"--batch={rows}", f"--seq={length}", f"--entry={entry}", *flags, "--inputs", given, "--outputs", out)
    return read(out)


def near(what, found, expected, limit):
    assert abs(found - expected) <= limit, f"{what}: {found!r}; expected {expected}"
    print(f"{what}: {found:.10f}")


def same(work, model, weights, original, *flags):
    """What is exported is what was there, without copies, buffers and dimensions of 1."""
    folder = work / "exported"
    run("hydra-export", weights, f"--model={model}", *flags, "-o", folder)
    found = read(folder / "model.safetensors")
    assert not (folder / "config.json").exists()
    for name, (shape, numbers) in found.items():
        before = original[name]
        assert numbers == before[1] and [n for n in shape if n > 1] == [n for n in before[0] if n > 1], name
    for name in original.keys() - found.keys():
        assert "_aux_loss" in name or "loss_baseline" in name or any(original[name] == original[n] for n in found), name
    (folder / "model.safetensors").unlink()
    folder.rmdir()


def weights_of(family, layers, first, layer, last):
    """Tensors in the order of the specification, with numbers drawn by their place: (name, shape, base, amplitude)."""
    order = [*first, *((f"{i}", *entry) for i in range(layers) for entry in layer(i)), *last]
    tensors, place = {}, 0
    for entry in order:
        index, (name, shape, base, amplitude) = (entry[0], entry[1:]) if len(entry) == 5 else (None, entry)
        name = name if index is None else name.replace("{}", index)
        tensors[name] = fill(1000 * family + place, shape, base, amplitude)
        place += 1
    return tensors


def hydra(models, work):
    D, Lq, Kd, hd, F, R, V, Nb = 96, 24, 12, 4, 256, 3, 97, 3
    narrow = math.sqrt(3 / 96)
    L = "layers.{}."

    def layer(i):
        yield L + "norm1.weight", [D], 1, 0.1
        yield L + "attention.qkv_proj.weight", [Lq + 2 * Kd, D], 0, narrow
        yield L + "attention.q_conv.conv1.weight", [Lq, hd, 3], 0, 0.3
        yield L + "attention.q_conv.conv2.weight", [Lq, Lq, 3], 0, 0.3
        yield L + "attention.k_conv.conv1.weight", [Kd, hd, 3], 0, 0.3
        yield L + "attention.k_conv.conv2.weight", [Kd, Kd, 3], 0, 0.3
        yield L + "attention.key_temperature", [1], 2, 0
        yield L + "attention.o_proj.weight", [D, Lq], 0, math.sqrt(3 / 24)
        yield L + "norm2.weight", [D], 1, 0.1
        yield L + "mlp.gate_up.weight", [2 * F, D], 0, narrow
        yield L + "mlp.down.weight", [D, F], 0, math.sqrt(3 / 256)
        yield L + "mor_executor.recursion_bias", [R, 1, 1, D], 0, 0.1
        yield L + "mor_executor.recursion_embed.weight", [R, D], 0, 0.1
        yield L + "mor_router.router.weight", [1, D], 0, 0.2
        yield L + "mor_router.router.bias", [1], 0.1, 0
        if i == 1:
            yield L + "mod_mlp_wrapper.mod_router.router.weight", [1, D], 0, 0.2
            yield L + "mod_mlp_wrapper.mod_router.router.bias", [1], 0.5, 0
        yield L + "final_norm.weight", [D], 1, 0.1

    tensors = weights_of(2, Nb, [("tok_emb.weight", [V, D], 0, 0.1)], layer, [("norm.weight", [D], 1, 0.1)])
    # What is shared is there twice, and buffers are too.
    tensors["output.weight"] = tensors["tok_emb.weight"]
    for name in ("gate_up", "down"):
        tensors[f"layers.1.mod_mlp_wrapper.mlp.{name}.weight"] = tensors[f"layers.1.mlp.{name}.weight"]
    tensors["layers.1.mod_mlp_wrapper.mod_router._aux_loss"] = ([], [0.5])
    for name in ("_ema", "_ema_var", "_step", "_initialized"):
        tensors["loss_baseline." + name] = ([], [1])
    write(work / "hydra_ref.safetensors", tensors)
    model, out = models / "hydra.mlir", work / "hydra.safetensors"
    run("hydra-import", work / "hydra_ref.safetensors", f"--model={model}", "--preset=ref", "--weights", out)
    same(work, model, out, tensors, "--preset=ref")
    for case, loss, flags in (
        ("fixed", 4.7655834964, ["mor=fixed,mod=dense,w_aux=0,ponder_scale=0"]),
        ("dynamic", 4.7160542457, ["mor=dynamic,mod=topk"]),
        ("static", 4.7335304717, ["mor=static,mod=static"]),
    ):
        results = evaluate(work, model, out, tokens(2, 32, V), "loss", "--preset=ref", "--set", *flags)
        near(f"HYDRA {case}", results["loss"][1][0], loss, 1e-10)


def ttt(models, work):
    D, H, d, F, V, layers = 64, 4, 16, 128, 97, 2
    wide, L = math.sqrt(3 / 64), "layers.{}."

    def layer(i):
        yield L + "norm1.weight", [D], 1, 0.1
        for name in "qkvo":
            yield f"{L}mixer.w_{name}.weight", [D, D], 0, wide
        yield L + "mixer.W0", [H, d, d], 0, 0.3
        yield L + "mixer.ln_weight", [H, d], 1, 0.1
        yield L + "mixer.ln_bias", [H, d], 0, 0.1
        yield L + "mixer.theta_lr.weight", [1, D], 0, 0.2
        yield L + "norm2.weight", [D], 1, 0.1
        yield L + "mlp.gate_proj.weight", [F, D], 0, wide
        yield L + "mlp.up_proj.weight", [F, D], 0, wide
        yield L + "mlp.down_proj.weight", [D, F], 0, math.sqrt(3 / 128)

    tensors = weights_of(3, layers, [("tok_embeddings.weight", [V, D], 0, 0.2)], layer, [("norm.weight", [D], 1, 0.1)])
    tensors["lm_head.weight"] = tensors["tok_embeddings.weight"]
    source = work / "step_000000100"
    source.mkdir()
    write(source / "model.safetensors", tensors)
    config = dict(vocab_size=V, d_model=D, n_layers=layers, n_heads=H, head_dim=d, ffn_dim=F, rms_eps=1e-5, ln_eps=1e-5,
                  rope_theta=1e4, b_ttt=16, eta_base=0.5, lr_gating=True, lr_gating_per_head=False, checkpoint_n_chunks=8,
                  max_seq_len=4096, tie_embeddings=True)  # fmt: skip
    (source / "meta.json").write_text(json.dumps({"step": 100, "world_size": 1, "cfg": config, "extra": {}}))
    model, out = work / "ttt.mlir", work / "ttt.safetensors"
    run("hydra-import", source, "-o", model, "--weights", out)
    same(work, model, out, tensors, "--preset=step_000000100")
    results = evaluate(work, model, out, tokens(2, 40, V), "loss", "--preset=step_000000100")
    near("TTT", results["loss"][1][0], 5.1856712637, 1e-10)


def megalodon_layer(c, first, swiglu):
    D, z, v, F, N = c["model_dim"], c["z_dim"], c["value_dim"], c["ffn_hidden_dim"], c["cema_ndim"]
    small, A = 1 / 8, "model.layers.{}.attn."
    ones = [1] if first else []  # what the first form has in shapes besides

    def layer(i):
        yield A + "timenorm.weight", [D], 0, 0.1
        yield A + "timenorm.bias", [D], 0, 0.1
        yield A + "cema.alpha", [D, N, *ones], 0, 0.35
        yield A + "cema.delta", [D, N, *ones], 0, 0.35
        yield A + "cema.theta", [D, *ones, *ones], 0, 2
        yield A + "cema.gamma_real", [D, N], 0, 1.7
        yield A + "cema.gamma_imag", [D, N], 0, 0.5
        yield A + "cema.omega", [D], 0, 0.43
        yield A + "rmsnorm.gamma", [D], 0, 0.1
        for name, rows, columns in (("wz", z, D), ("wv", v, D), ("wr", v, D), ("wh1", D, D), ("wh2", D, v)):
            yield f"{A}{name}.weight", [rows, columns], 0, small
            if first or name != "wh2":
                yield f"{A}{name}.bias", [rows], 0, 0.1
        yield A + "gamma", [2, z], 0, 0.2
        yield A + "beta", [2, z], 0, 0.1
        B = A.replace("attn.", "ffn.")
        yield B + "norm.weight", [D], 1 if first else 0, 0.1
        yield B + "norm.bias", [D], 0, 0.1
        for name, rows, columns in (("fc1", F, D), ("fc2", D, F), ("fc3", F, D)):
            if name == "fc3" and not swiglu:
                continue
            yield f"{B}{name}.weight", [rows, columns], 0, 1 / math.sqrt(128) if name == "fc2" else small
            if first:
                yield f"{B}{name}.bias", [rows], 0, 0.1

    return layer


def megalodon_jax(models, work):
    for swiglu, loss in ((False, 4.7476323166), (True, 4.7106794136)):
        c = dict(vocab_size=97, model_dim=64, num_layers=2, num_heads=2, z_dim=32, value_dim=64, ffn_hidden_dim=128, cema_ndim=4,
                 chunk_size=16, norm_num_groups=8, norm_eps=1e-5, rope_base=None, swiglu=swiglu, rescale_nffn=False,
                 scale_emb=False, share_emb=False, norm_affine=True, dropout=0.0, attention_window=None, output_size=-1,
                 init_mode="he", param_dtype="float32")  # fmt: skip
        layer, ends = megalodon_layer(c, False, swiglu), [("model.norm.weight", [64], 0, 0.1), ("model.norm.bias", [64], 0, 0.1), ("lm_head.weight", [97, 64], 0, 1 / 8)]
        tensors = weights_of(5 if swiglu else 4, 2, [("model.embed.weight", [97, 64], 0, 0.5)], layer, ends)
        source, model, out = work / f"mega-{swiglu}.safetensors", work / "jax.mlir", work / "jax.safetensors"
        metadata = {"format": "megalodon-jax", "format_version": "2", "rope_layout": "adjacent_pair", "normalization_storage": "plus_one", "config_json": json.dumps(c)}
        write(source, tensors, metadata)
        run("hydra-import", source, "-o", model, "--weights", out)
        same(work, model, out, tensors, f"--preset=mega-{swiglu}")
        results = evaluate(work, model, out, tokens(2, 32, 97), "loss", f"--preset=mega-{swiglu}")
        near(f"Megalodon (JAX, SwiGLU {swiglu})", results["loss"][1][0], loss, 1e-10)


# ---- The first form of Megalodon, one number after the other.


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def silu(x):
    return x * sigmoid(x)


def linear(rows, weight, bias=None):
    (out, width), w = weight
    return [[sum(a * w[o * width + i] for i, a in enumerate(row)) + (bias[1][o] if bias else 0) for o in range(out)] for row in rows]


def norm_by_means(rows, groups, w, b):
    size = len(rows[0]) // groups
    mean, squares, out = [0.0] * groups, [1.0] * groups, []
    for t, row in enumerate(rows, 1):
        y = []
        for g in range(groups):
            part = row[g * size : (g + 1) * size]
            here, before = sum(part) / size, mean[g]
            mean[g] = (before * (t - 1) + here) / t
            squares[g] += (here - before) * (here - mean[g])
            r = 1 / math.sqrt(max(squares[g] / t, 1e-6) + 1e-5)
            y += [(x - mean[g]) * r * (w[1][g * size + i] + 1) + b[1][g * size + i] for i, x in enumerate(part)]
        out.append(y)
    return out


def moving_average(rows, p, N):
    D, out = len(rows[0]), [[] for _ in rows]
    for c in range(D):
        for n in range(1, N + 1):
            at = c * N + n - 1
            alpha, delta = sigmoid(p["alpha"][1][at]), sigmoid(p["delta"][1][at])
            q = cmath.rect(1 - alpha * delta, n * 2 * math.pi / N * sigmoid(p["theta"][1][c]))
            gamma = complex(p["gamma_real"][1][at], p["gamma_imag"][1][at]) / math.sqrt(N)
            h = 0
            for t, row in enumerate(rows):
                h = q * h + alpha * row[c]
                if n == 1:
                    out[t].append(p["omega"][1][c] * row[c])
                out[t][c] += (gamma * h).real
    return out


def rotated(x, t):
    half = len(x) // 2
    angle = [t * 1e4 ** (-i / half) for i in range(half)]
    return [x[i] * math.cos(angle[i]) - x[i + half] * math.sin(angle[i]) for i in range(half)] + [
        x[i + half] * math.cos(angle[i]) + x[i] * math.sin(angle[i]) for i in range(half)
    ]


def first_form(c, tensors, ids):
    D, H, z, v, N, Cs = (c[k] for k in ("model_dim", "num_heads", "z_dim", "value_dim", "cema_ndim", "chunk_size"))
    dh, dv = z // H, v // H
    embed = tensors["model.embed.weight"][1]
    scale = math.sqrt(D) if c["scale_emb"] else 1
    x = [[scale * e for e in embed[t * D : (t + 1) * D]] for t in ids]
    for i in range(c["num_layers"]):
        prefix = f"model.layers.{i}."
        p = {n[len(prefix) :]: value for n, value in tensors.items() if n.startswith(prefix)}
        xt = norm_by_means(x, c["norm_num_groups"], p["attn.timenorm.weight"], p["attn.timenorm.bias"])
        averaged = moving_average(xt, {n[10:]: value for n, value in p.items() if n.startswith("attn.cema.")}, N)
        mx = []
        for row in averaged:
            r = 1 / math.sqrt(sum(a * a for a in row) / D + 1e-5)
            mx.append([a * r * (1 + g) for a, g in zip(row, p["attn.rmsnorm.gamma"][1])])
        values = [[silu(a) for a in row] for row in linear(xt, p["attn.wv.weight"], p["attn.wv.bias"])]
        gates = [[silu(a) for a in row] for row in linear(mx, p["attn.wr.weight"], p["attn.wr.bias"])]
        shared = linear(mx, p["attn.wz.weight"], p["attn.wz.bias"])
        gated = [[0.0] * v for _ in x]
        for h in range(H):
            both = []
            for which in range(2):
                turned = []
                for t, row in enumerate(shared):
                    part = row[h * dh : (h + 1) * dh]
                    r = 1 / math.sqrt(sum(a * a for a in part) / dh + 1e-5)
                    at = which * z + h * dh
                    turned.append(rotated([a * r * (p["attn.gamma"][1][at + k] + 1) / math.sqrt(dh) + p["attn.beta"][1][at + k] for k, a in enumerate(part)], t))
                both.append(turned)
            for t in range(len(x)):
                keys = range(t // Cs * Cs, t + 1)
                weights = [math.exp(sum(a * b for a, b in zip(both[0][t], both[1][s]))) for s in keys]
                for e in range(dv):
                    at = h * dv + e
                    gated[t][at] = sum(w * values[s][at] for w, s in zip(weights, keys)) / sum(weights) * gates[t][at]
        hop1, hop2 = linear(mx, p["attn.wh1.weight"], p["attn.wh1.bias"]), linear(gated, p["attn.wh2.weight"], p["attn.wh2.bias"])
        rows = []
        for t, row in enumerate(x):
            y = [a + b + e for a, b, e in zip(row, hop1[t], hop2[t])]
            mean = sum(y) / D
            r = 1 / math.sqrt(sum((a - mean) ** 2 for a in y) / D + 1e-5)
            rows.append([(a - mean) * r * w + b for a, w, b in zip(y, p["ffn.norm.weight"][1], p["ffn.norm.bias"][1])])
        u = [[silu(a) for a in row] for row in linear(rows, p["ffn.fc1.weight"], p["ffn.fc1.bias"])]
        if c["swiglu"]:
            u = [[a * b for a, b in zip(*pair)] for pair in zip(u, linear(rows, p["ffn.fc3.weight"], p["ffn.fc3.bias"]))]
        x = [[a + b for a, b in zip(*pair)] for pair in zip(x, linear(u, p["ffn.fc2.weight"], p["ffn.fc2.bias"]))]
    final = norm_by_means(x, c["norm_num_groups"], tensors["model.norm.weight"], tensors["model.norm.bias"])
    return [score for row in linear(final, tensors["model.embed.weight"]) for score in row]


def megalodon_hf(models, work):
    for swiglu in (False, True):
        c = dict(model_type="megalodon", architectures=["MegalodonForCausalLM"], vocab_size=29, model_dim=16, num_layers=2, num_heads=2,
                 z_dim=8, value_dim=16, ffn_hidden_dim=24, cema_ndim=3, chunk_size=8, max_cache_len=8, cache_unbounded=False,
                 max_positions=1000000, rope_base=None, efficient_attn=None, norm_num_groups=4, norm_affine=True, norm_eps=1e-5,
                 dropout=0.0, attention_dropout=0.0, hidden_dropout=0.0, swiglu=swiglu, rescale_nffn=False, scale_emb=swiglu,
                 share_emb=False, init_mode="he", output_size=-1, is_decoder=True, num_attention_heads=2, torch_dtype="float32",
                 transformers_version="4.57.0", gradient_checkpointing=False, pad_token_id=0)  # fmt: skip
        tensors = weights_of(6, 2, [("model.embed.weight", [29, 16], 0, 0.5)], megalodon_layer(c, True, swiglu),
                             [("model.norm.weight", [16], 0, 0.1), ("model.norm.bias", [16], 0, 0.1)])  # fmt: skip
        source, model, out = work / f"hf-{swiglu}", work / "hf.mlir", work / "hf.safetensors"
        source.mkdir()
        write(source / "model.safetensors", {**tensors, "lm_head.weight": tensors["model.embed.weight"]})
        (source / "config.json").write_text(json.dumps(c))
        run("hydra-import", source, "-o", model, "--weights", out)
        same(work, model, out, tensors, f"--preset=hf-{swiglu}")
        given = {"tokens": tokens(1, 24, 29)["tokens"]}
        found = evaluate(work, model, out, given, "logits", f"--preset=hf-{swiglu}")["logits"][1]
        expected = first_form(c, tensors, given["tokens"][1])
        size = max(map(abs, expected))
        near(f"Megalodon (PyTorch, SwiGLU {swiglu}), farthest score", max(abs(a - b) for a, b in zip(found, expected)) / size, 0, 1e-12)


models, work = map(pathlib.Path, sys.argv[1:])
work.mkdir(parents=True)
for check in (hydra, ttt, megalodon_jax, megalodon_hf):
    check(models, work)
