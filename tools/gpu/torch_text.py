#!/usr/bin/env python3
"""Speed of greedy decoding by transformers with a static cache and compiled steps, of random weights of a shape.

Usage: torch_text.py DIR BATCH PROMPT    DIR has a config.json; prints `torch text NAME BATCH ms`, ms a step
"""
import os
import sys
import time

import torch
from transformers import AutoConfig, AutoModelForCausalLM

path, batch, prompt = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
config = AutoConfig.from_pretrained(path)
with torch.device("cuda"):
    model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
ids = torch.randint(0, config.vocab_size, (batch, prompt), device="cuda")


def seconds(tokens):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    with torch.no_grad():
        model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=False,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
            cache_implementation="static",
            pad_token_id=0,
            eos_token_id=config.vocab_size - 1,
        )
    torch.cuda.synchronize()
    return time.perf_counter() - begin


SHORT, LONG = 40, 300
for tokens in (LONG, LONG, SHORT):  # compiles
    seconds(tokens)
step = (min(seconds(LONG) for _ in range(2)) - min(seconds(SHORT) for _ in range(2))) / (LONG - SHORT)
print(f"torch text {os.path.basename(path.rstrip('/'))} {batch} {1e3 * step:.3f}")
