#!/usr/bin/env python3
"""torch_attention.py B-H-Hk-S-D...: PyTorch's attention, bf16, causal, in CUDA graphs; microseconds forward and backward.

Names may be paths with an ending. A line for each back end that takes the shape: `torch attention NAME BACKEND F B`.
"""
import pathlib
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

CALLS, ROUNDS = 20, 5
BACKENDS = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}


def microseconds(call):
    """Of one of many calls in a graph: without what the host takes to launch."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(CALLS):
            call()
    graph.replay()
    times = []
    for _ in range(ROUNDS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / CALLS)
    return statistics.median(times)


def main():
    for name in (pathlib.Path(argument).stem for argument in sys.argv[1:]):
        batch, heads, key_heads, length, width = map(int, name.split("-"))
        # As projections leave them: [B, S, H, D], seen as [B, H, S, D].
        q, k, v = (torch.randn(batch, length, h, width, device="cuda", dtype=torch.bfloat16).transpose(1, 2)
                   .requires_grad_() for h in (heads, key_heads, key_heads))
        gradient = torch.randn_like(q)
        for backend, kind in BACKENDS.items():
            try:
                with sdpa_kernel(kind):
                    def forward():
                        return scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=heads != key_heads)

                    def both():
                        torch.autograd.grad(forward(), (q, k, v), gradient)

                    first = microseconds(forward)
                    print(f"torch attention {name} {backend} {first:.1f} {microseconds(both) - first:.1f}", flush=True)
            except RuntimeError as error:
                print(f"torch attention {name} {backend} refuses: {error}", file=sys.stderr)


main()
