"""The same training steps compiled by XLA. A line of JSON for each ROW, as in xl-4x512-clip.

jit with donated state, bf16 compute over f32 parameters, cuDNN's attention, AdamW, layers unrolled (a scan over them is slower); ms of a
step, of N in turn without a wait between them.
"""
import argparse, gc, json, os, time
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
import jax, jax.numpy as jnp, numpy as np

import lm_rows

bf = jnp.bfloat16

def initial(z, S, key):
    d, hd, count = z.width, z.width // z.heads, [0]
    def normal(*shape):
        count[0] += 1
        return jax.random.normal(jax.random.fold_in(key, count[0]), shape) * 0.02
    def norm(): return dict(w=jnp.ones(d), b=jnp.zeros(d)) if z.gpt2 else dict(w=jnp.ones(d))
    def linear(n, k): return dict(w=normal(n, k), b=jnp.zeros(k)) if z.gpt2 else dict(w=normal(n, k))
    layers = [dict(n1=norm(), n2=norm(), qkv=linear(d, (z.heads + 2 * z.key_heads) * hd), o=linear(d, d),
                   up=linear(d, z.hidden * (1 if z.gpt2 else 2)), down=linear(z.hidden, d)) for _ in range(z.layers)]
    p = dict(emb=normal(z.vocabulary, d), nf=norm(), layers=layers)
    if z.gpt2: p["pos"] = normal(S, d)
    else: p["head"] = normal(d, z.vocabulary)
    return p

def norm(z, x, p):
    x = x.astype(jnp.float32)
    if z.gpt2:
        x = x - x.mean(-1, keepdims=True)
        return (x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["w"] + p["b"]).astype(bf)
    return (x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-5) * p["w"]).astype(bf)

def linear(x, p):
    y = x @ p["w"].astype(bf)
    return y + p["b"].astype(bf) if "b" in p else y

def rope(x, cos, sin):
    x = x.astype(jnp.float32); a, b = x[..., ::2], x[..., 1::2]
    return jnp.stack((a * cos - b * sin, a * sin + b * cos), -1).reshape(x.shape).astype(bf)

def block(z, x, p, cos, sin):
    (B, S, d), hd = x.shape, z.width // z.heads
    qkv = linear(norm(z, x, p["n1"]), p["qkv"]).reshape(B, S, -1, hd)
    q, k, v = jnp.split(qkv, (z.heads, z.heads + z.key_heads), 2)
    if not z.gpt2: q, k = rope(q, cos, sin), rope(k, cos, sin)
    a = jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn")
    x = x + linear(a.reshape(B, S, d), p["o"]).astype(jnp.float32)
    h = linear(norm(z, x, p["n2"]), p["up"])
    if z.gpt2: h = jax.nn.gelu(h)
    else:
        g, u = jnp.split(h, 2, -1)
        h = jax.nn.silu(g) * u
    return x + linear(h, p["down"]).astype(jnp.float32)

def loss(z, p, ids, targets):
    S, hd = ids.shape[1], z.width // z.heads
    angles = np.outer(np.arange(S), 1 / 10000 ** (np.arange(0, hd, 2) / hd))
    cos, sin = (jnp.asarray(f(angles), jnp.float32)[None, :, None] for f in (np.cos, np.sin))
    x = p["emb"][ids]
    if z.gpt2: x = x + p["pos"]
    for layer in p["layers"]: x = block(z, x, layer, cos, sin)
    head = p["emb"].T if z.gpt2 else p["head"]
    scores = (norm(z, x, p["nf"]) @ head.astype(bf)).astype(jnp.float32)
    return (jax.nn.logsumexp(scores, -1) - jnp.take_along_axis(scores, targets[..., None], -1)[..., 0]).mean()

def adamw(params, grads, state, clip, rate=1e-4, b1=0.9, b2=0.95, eps=1e-8, decay=0.01):
    if clip:
        length = jnp.sqrt(sum((g.astype(jnp.float32) ** 2).sum() for g in jax.tree.leaves(grads)))
        grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / (length + 1e-6)), grads)
    t = state["t"] + 1
    c1, c2 = 1 - b1 ** t.astype(jnp.float32), 1 - b2 ** t.astype(jnp.float32)
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state["m"], grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state["v"], grads)
    new = jax.tree.map(lambda p, m, v: p - rate * (m / c1 / (jnp.sqrt(v / c2) + eps) + decay * p), params, m, v)
    return new, dict(m=m, v=v, t=t)

def run(row, n, times):
    z, key = row.size, jax.random.PRNGKey(0)
    params = initial(z, row.sequence, key)
    zeros = lambda: jax.tree.map(jnp.zeros_like, params)
    state = (params, dict(m=zeros(), v=zeros(), t=jnp.zeros((), jnp.int32)))
    del params
    ids, targets = (jax.random.randint(jax.random.fold_in(key, i), (row.batch, row.sequence), 0, z.vocabulary) for i in (10001, 10002))
    def step(s, ids, targets):
        l, g = jax.value_and_grad(lambda p: loss(z, p, ids, targets))(s[0])
        return adamw(s[0], g, s[1], row.clip), l
    t0 = time.time()
    f = jax.jit(step, donate_argnums=0).lower(state, ids, targets).compile()
    tc, ms = time.time() - t0, []
    for _ in range(4): state, l = f(state, ids, targets)
    for _ in range(times):
        jax.block_until_ready((state, l)); t0 = time.time()
        for _ in range(n): state, l = f(state, ids, targets)
        jax.block_until_ready((state, l)); ms.append((time.time() - t0) / n * 1e3)
    memory = f.memory_analysis()
    peak = (memory.argument_size_in_bytes + memory.output_size_in_bytes - memory.alias_size_in_bytes + memory.temp_size_in_bytes) / 2**30
    return dict(peer="xla", row=row.name, mode="jit", ms=[round(x, 3) for x in ms], peak_gib=round(peak, 2),
                tflops=round(lm_rows.flops(row) / min(ms) / 1e9, 1), first_s=round(tc, 1))

if __name__ == "__main__":
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("rows", nargs="+", help="ROW"); ap.add_argument("-n", type=int, default=20); ap.add_argument("--rounds", type=int, default=2)
    a = ap.parse_args()
    for name in a.rows:
        row = lm_rows.row(name)
        try: r = run(row, a.n, a.rounds)
        except Exception as e: r = dict(peer="xla", row=name, mode="jit", error=repr(e)[:200])
        gc.collect()
        print(json.dumps(r), flush=True)
