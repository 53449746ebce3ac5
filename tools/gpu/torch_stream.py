#!/usr/bin/env python3
"""Memory-bound kernels: torch.compile and fused AdamW against a copy of the same number of bytes. bf16, 65536 x 4096 (large, so that host overhead hides)."""
import torch, torch.nn.functional as F, statistics, json
def t(fn, n=15):
    for _ in range(8): fn()
    torch.cuda.synchronize(); ts = []
    for _ in range(n):
        s, e = torch.cuda.Event(True), torch.cuda.Event(True); s.record(); [fn() for _ in range(5)]; e.record(); torch.cuda.synchronize(); ts.append(s.elapsed_time(e) / 5)
    return statistics.median(ts)
def copy_rate(nbytes):
    a = torch.empty(nbytes // 2, dtype=torch.uint8, device="cuda"); b = torch.empty_like(a)
    return nbytes / t(lambda: b.copy_(a)) / 1e9
def row(name, ms, nbytes):
    r = nbytes / ms / 1e9; c = copy_rate(nbytes)
    print(json.dumps(dict(kernel=name, us=round(ms * 1e3, 1), tb_s=round(r, 2), copy_tb_s=round(c, 2), share=round(r / c, 2))), flush=True)
R, C = 65536, 4096; n = R * C
x = torch.randn(R, C, device="cuda", dtype=torch.bfloat16, requires_grad=True); w = torch.randn(C, device="cuda", dtype=torch.bfloat16, requires_grad=True)
f = torch.compile(lambda x, w: F.rms_norm(x, (C,), w, 1e-5)); y = f(x, w); g = torch.randn_like(y)
with torch.no_grad(): row("rms_norm", t(lambda: f(x.detach(), w.detach())), 2 * n * 2)
row("rms_norm_backward", t(lambda: torch.autograd.grad(y, (x, w), g, retain_graph=True)), 3 * n * 2)
fs = torch.compile(lambda x: torch.softmax(x.float(), -1).to(torch.bfloat16)); ys = fs(x)
with torch.no_grad(): row("softmax", t(lambda: fs(x.detach())), 2 * n * 2)
row("softmax_backward", t(lambda: torch.autograd.grad(ys, x, g, retain_graph=True)), 3 * n * 2)
a = torch.randn(R, C, device="cuda", dtype=torch.bfloat16, requires_grad=True); b = torch.randn(R, C, device="cuda", dtype=torch.bfloat16, requires_grad=True)
fw = torch.compile(lambda a, b: F.silu(a) * b); yw = fw(a, b)
with torch.no_grad(): row("swiglu", t(lambda: fw(a.detach(), b.detach())), 3 * n * 2)
row("swiglu_backward", t(lambda: torch.autograd.grad(yw, (a, b), g, retain_graph=True)), 5 * n * 2)
ps = [torch.randn(4096, 4096, device="cuda") for _ in range(16)]
for p in ps: p.grad = torch.randn_like(p)
o = torch.optim.AdamW(ps, lr=1e-4, fused=True); o.step()
m = sum(p.numel() for p in ps); row("adamw", t(o.step), m * 28)
