#!/usr/bin/env python3
"""Trains GPT-2 124M with PyTorch on the shards that hydra-run trains on: the peer of run.sh.

Usage: torch_train.py SHARDS STEPS SECONDS CHECKPOINT LOG    goes on from CHECKPOINT if it is there, saves after SECONDS

transformers' GPT-2 without dropout, torch.compile, bf16 autocast over f32, fused AdamW; rates, clipping, rows of a step and
held-out rows are those of the script. LOG gets a JSON object for each measurement.
"""
import json
import math
import os
import struct
import sys
import time

import torch
import torch.nn.functional as F
from transformers import GPT2Config, GPT2LMHeadModel

folder, steps, seconds, checkpoint, log = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5]
S, ROWS, PIECES = 1024, int(os.environ.get("ROWS", 32)), int(os.environ.get("PIECES", 2))
PEAK, FLOOR, WARMUP, EVAL_EVERY, EVAL_BATCHES = 6e-4, 6e-5, 300, 500, 40
begin = time.time()


def tokens():
    """All tokens of the shards in the order of their names, as 16-bit ids (runtime/data/Shard.h)."""
    parts = []
    for name in sorted(name for name in os.listdir(folder) if name.endswith(".tokens")):
        with open(os.path.join(folder, name), "rb") as file:
            head = file.read(128)
            width, count = struct.unpack_from("<I", head, 12)[0], struct.unpack_from("<Q", head, 40)[0]
            raw = torch.frombuffer(bytearray(file.read(width * count)), dtype={2: torch.uint16, 4: torch.int32}[width])
            parts.append(raw.to(torch.int32))
    return torch.cat(parts).cuda()


stream = tokens()
held = stream.numel() - stream.numel() // 10
train_rows, held_rows = (held - 1) // S, (stream.numel() - held - 1) // S
print(f"{stream.numel()} tokens, {train_rows} rows to train on", flush=True)


def rows(first, numbers):
    at = (first + numbers * S)[:, None] + torch.arange(S + 1, device="cuda")[None]
    row = stream[at].long()
    return row[:, :-1].contiguous(), row[:, 1:].contiguous()


torch.manual_seed(0)
torch.set_float32_matmul_precision("high")
model = GPT2LMHeadModel(GPT2Config(vocab_size=50257, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0)).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK, betas=(0.9, 0.95), eps=1e-8, weight_decay=0.1, fused=True)
step = 0
if os.path.exists(checkpoint):
    state = torch.load(checkpoint, map_location="cuda")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    step = state["step"]


def loss_of(ids, labels):
    with torch.autocast("cuda", torch.bfloat16):
        logits = model(input_ids=ids, use_cache=False).logits
    return F.cross_entropy(logits.float().flatten(0, 1), labels.flatten())


compiled = torch.compile(loss_of)


def rate(step):
    if step < WARMUP:
        return PEAK * (step + 1) / WARMUP
    q = (step - WARMUP) / max(1, steps - 1 - WARMUP)
    return FLOOR + (PEAK - FLOOR) * (1 + math.cos(math.pi * q)) / 2


def numbers(step):
    """The rows of a step: a shuffled pass over all rows after the other."""
    first = step * ROWS * PIECES
    out = []
    while len(out) < ROWS * PIECES:
        epoch, at = divmod(first + len(out), train_rows)
        order = torch.randperm(train_rows, generator=torch.Generator().manual_seed(epoch)) if numbers.epoch != epoch else numbers.order
        numbers.epoch, numbers.order = epoch, order
        out += order[at:at + ROWS * PIECES - len(out)].tolist()
    return torch.tensor(out, device="cuda")


numbers.epoch = None


def measure():
    with torch.no_grad():
        total = sum(compiled(*rows(held, torch.arange(b * ROWS, (b + 1) * ROWS, device="cuda"))) for b in range(EVAL_BATCHES))
    return float(total) / EVAL_BATCHES


file = open(log, "a")
spent = 0.0
while step < steps and time.time() - begin < seconds:
    torch.cuda.synchronize()
    since, first = time.time(), step
    while step < steps and (step == first or step % EVAL_EVERY) and (step % 20 or time.time() - begin < seconds):
        for group in optimizer.param_groups:
            group["lr"] = rate(step)
        for piece in numbers(step).chunk(PIECES):
            (compiled(*rows(0, piece)) / PIECES).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        step += 1
    torch.cuda.synchronize()
    ms = 1e3 * (time.time() - since) / (step - first)
    file.write(json.dumps({"step": step, "tokens": step * ROWS * PIECES * S, "held_out": measure(), "ms": ms, "seconds": time.time() - begin}) + "\n")
    file.flush()
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}, checkpoint)
print(f"step {step} of {steps} after {time.time() - begin:.0f} s", flush=True)
