#!/usr/bin/env python3
"""Makes the goldens of test/frontend: tiny random models of each architecture, by transformers.

For every case, OUT/<case>/ gets what save_pretrained writes (config.json, weights), and golden.safetensors:

  tokens [2, 12], labels [2, 12]   i32; labels are the next tokens, -100 at the end of a row
  logits [2, 12, V], loss []       f32
  grad.<name>                      f32, by the names of transformers; of experts by those of files
  greedy [28]                      i32: 4 tokens, and the 24 that the model continues them with
  long.tokens, long.logits         of a longer row, where positions are scaled by the length

Usage: make-goldens.py OUT [CASE...]      needs torch, transformers and safetensors
       make-goldens.py --check OUT DIR    compares the logits of exported models DIR/<case> with OUT
"""
import json
import pathlib
import sys
import time
import traceback

import torch
import transformers
from safetensors.torch import load_file, save_file

VOCABULARY, ROWS, LENGTH, PROMPT, NEW = 61, 2, 12, 4, 24

LLAMA = dict(vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
             num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
             rms_norm_eps=1e-5, tie_word_embeddings=False)
ONE_LAYER = dict(LLAMA, num_hidden_layers=1, intermediate_size=16, head_dim=8)


def scaled(kind, **parameters):
    return dict(rope_type=kind, rope_theta=10000.0, **parameters)


# Case: class of the configuration, its values, how it is saved, and where the second row has tokens of padding.
CASES = {
    "llama": ("LlamaConfig", LLAMA, {}),
    "llama-tied": ("LlamaConfig", dict(ONE_LAYER, tie_word_embeddings=True, num_key_value_heads=1), {}),
    "llama-biases": ("LlamaConfig", dict(ONE_LAYER, attention_bias=True, mlp_bias=True), {}),
    "llama-bf16": ("LlamaConfig", ONE_LAYER, {"dtype": torch.bfloat16}),
    "llama-shards": ("LlamaConfig", LLAMA, {"shards": "8KB"}),
    "llama-llama3": ("LlamaConfig", dict(ONE_LAYER, rope_parameters=scaled(
        "llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
        original_max_position_embeddings=64)), {}),
    "llama-linear": ("LlamaConfig", dict(ONE_LAYER, rope_parameters=scaled("linear", factor=2.5)), {}),
    "llama-dynamic": ("LlamaConfig", dict(ONE_LAYER, max_position_embeddings=8,
                                          rope_parameters=scaled("dynamic", factor=4.0)), {}),
    "llama-yarn": ("LlamaConfig", dict(ONE_LAYER, rope_parameters=scaled(
        "yarn", factor=4.0, original_max_position_embeddings=32, beta_fast=8.0, beta_slow=1.0)), {}),
    "mistral": ("MistralConfig", dict(LLAMA, head_dim=8, sliding_window=5, rms_norm_eps=1e-6), {}),
    "mixtral": ("MixtralConfig", dict(LLAMA, num_local_experts=4, num_experts_per_tok=2), {}),
    "mixtral-window": ("MixtralConfig", dict(LLAMA, num_local_experts=8, num_experts_per_tok=2, head_dim=8,
                                             num_hidden_layers=1, sliding_window=5), {}),
    "qwen2": ("Qwen2Config", dict(LLAMA, use_sliding_window=True, sliding_window=4,
                                  max_window_layers=1), {}),
    "qwen2-tied": ("Qwen2Config", dict(LLAMA, num_hidden_layers=1, tie_word_embeddings=True), {}),
    "qwen3": ("Qwen3Config", dict(LLAMA, head_dim=8), {}),
    "gpt2": ("GPT2Config", dict(vocab_size=VOCABULARY, n_embd=16, n_layer=2, n_head=4, n_positions=32), {}),
    "phi3": ("Phi3Config", dict(LLAMA, sliding_window=6, pad_token_id=0), {}),
    "phi3-partial": ("Phi3Config", dict(LLAMA, num_hidden_layers=1, hidden_size=32,
                                        partial_rotary_factor=0.5, pad_token_id=0), {}),
    "phi3-longrope": ("Phi3Config", dict(
        LLAMA, num_hidden_layers=1, hidden_size=32, intermediate_size=16, pad_token_id=0,
        original_max_position_embeddings=16, rope_parameters=scaled(
            "longrope", short_factor=[1.0, 1.1, 1.3, 1.7], long_factor=[1.0, 2.0, 5.0, 9.0],
            original_max_position_embeddings=16)), {}),
    "olmo2": ("Olmo2Config", LLAMA, {}),
    "gpt_neox": ("GPTNeoXConfig", dict(
        vocab_size=VOCABULARY, hidden_size=32, intermediate_size=32, num_hidden_layers=1,
        num_attention_heads=4, max_position_embeddings=64, rotary_pct=0.5, tie_word_embeddings=False), {}),
    "gpt_neox-serial": ("GPTNeoXConfig", dict(
        vocab_size=VOCABULARY, hidden_size=16, intermediate_size=24, num_hidden_layers=2,
        num_attention_heads=2, max_position_embeddings=64, rotary_pct=0.25,
        use_parallel_residual=False, tie_word_embeddings=True), {}),
    "gemma2": ("Gemma2Config", dict(
        LLAMA, head_dim=8, sliding_window=4, query_pre_attn_scalar=12, attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0, tie_word_embeddings=True), {}),
    "gemma3": ("Gemma3TextConfig", dict(
        LLAMA, num_hidden_layers=3, intermediate_size=16, head_dim=8, sliding_window=4,
        query_pre_attn_scalar=12, tie_word_embeddings=True,
        layer_types=["sliding_attention", "sliding_attention", "full_attention"]), {}),
    "gemma3-padding": ("Gemma3TextConfig", dict(
        LLAMA, num_hidden_layers=1, intermediate_size=5, num_attention_heads=1, num_key_value_heads=1, head_dim=4,
        sliding_window=6, query_pre_attn_scalar=12, tie_word_embeddings=True, pad_token_id=0,
        layer_types=["full_attention"]), {"dtype": torch.bfloat16, "padding": [6, 10]}),
    "gemma3-yarn": ("Gemma3TextConfig", dict(
        LLAMA, hidden_size=48, intermediate_size=5, num_attention_heads=6, num_key_value_heads=6, head_dim=4,
        attention_bias=True, max_position_embeddings=32, rms_norm_eps=1e-3, sliding_window=3, sliding_window_pattern=2,
        query_pre_attn_scalar=4, tie_word_embeddings=True, layer_types=["sliding_attention", "full_attention"],
        rope_parameters={
            "full_attention": scaled("yarn", factor=4.0, original_max_position_embeddings=8, beta_fast=32.0,
                                     beta_slow=1.0, mscale=1.0, mscale_all_dim=1.0, truncate=False),
            "sliding_attention": dict(rope_type="default", rope_theta=300.0)}), {}),
}


def randomise(model):
    """Numbers that leave nothing untested: no bias of zeros, no scale of ones."""
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape)
        if parameter.dim() == 1:
            parameter.data.add_(0.2 * noise)
        else:
            parameter.data.copy_((0.5 if "embed" in name or "wte" in name else 0.25) * noise)


def by_files(name, gradient):
    """Experts that transformers 5 has in one tensor are several in files: gate and up behind each other, then down."""
    if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
        return {name.replace(".mlp.gate.", ".block_sparse_moe.gate."): gradient}
    stem = name[:name.index(".mlp.")] + ".block_sparse_moe.experts."
    named = {}
    for expert, matrix in enumerate(gradient):
        if name.endswith("down_proj"):
            named[f"{stem}{expert}.w2.weight"] = matrix
        else:
            named[f"{stem}{expert}.w1.weight"], named[f"{stem}{expert}.w3.weight"] = matrix.chunk(2)
    return named


def logits_of(model, tokens):
    return model(input_ids=tokens, use_cache=False).logits


def make(case, out):
    kind, values, how = CASES[case]
    torch.manual_seed(1 + sorted(CASES).index(case))
    config = getattr(transformers, kind)(**values)
    config.bos_token_id = config.eos_token_id = None
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="eager")
    model = model.float().eval()
    randomise(model)
    dtype = how.get("dtype")
    if dtype:
        for parameter in model.parameters():
            parameter.data = parameter.data.to(dtype).float()

    tokens = torch.randint(0, VOCABULARY, (ROWS, LENGTH))
    tokens[1, how.get("padding", [])] = config.pad_token_id or 0
    labels = torch.full_like(tokens, -100)
    labels[:, :-1] = tokens[:, 1:]
    logits = logits_of(model, tokens)
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, VOCABULARY), labels.reshape(-1),
                                             ignore_index=-100)
    loss.backward()
    golden = {"tokens": tokens.int(), "labels": labels.int(), "logits": logits.detach(), "loss": loss.detach()}
    for name, parameter in model.named_parameters():
        # An expert that no token goes to has none.
        whole = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        for stored, gradient in by_files(name, whole).items():
            golden["grad." + stored] = gradient.clone()
    with torch.no_grad():
        row = tokens[:1, :PROMPT]
        for _ in range(NEW):
            row = torch.cat([row, logits_of(model, row)[:, -1:].argmax(-1)], 1)
        golden["greedy"] = row[0].int()
        golden["long.tokens"] = row.int()
        golden["long.logits"] = logits_of(model, row)

    folder = out / case
    if dtype:
        model = model.to(dtype)
    model.save_pretrained(folder, **({"max_shard_size": how["shards"]} if "shards" in how else {}))
    for extra in folder.glob("generation_config.json"):
        extra.unlink()
    save_file({name: tensor.contiguous() for name, tensor in golden.items()}, folder / "golden.safetensors",
              metadata={"torch": torch.__version__, "transformers": transformers.__version__})


def check(case, out, exported):
    golden = load_file(out / case / "golden.safetensors")
    model = transformers.AutoModelForCausalLM.from_pretrained(
        exported / case, attn_implementation="eager", dtype=torch.float32).eval()
    with torch.no_grad():
        logits = logits_of(model, golden["tokens"].long())
    error = ((logits - golden["logits"]).norm() / golden["logits"].norm()).item()
    assert error < 1e-5, f"logits differ by {error:.3g} relative"
    return f"logits within {error:.2g}"


def main():
    checking = sys.argv[1] == "--check"
    out = pathlib.Path(sys.argv[2 if checking else 1])
    rest = sys.argv[3:] if checking else sys.argv[2:]
    exported = pathlib.Path(rest.pop(0)) if checking else None
    print("torch", torch.__version__, "transformers", transformers.__version__, flush=True)
    failed = []
    for case in rest or CASES:
        if checking and not (exported / case).is_dir():
            continue
        began = time.time()
        try:
            note = check(case, out, exported) if checking else make(case, out)
            print(f"{case}: ok {note or ''} ({time.time() - began:.1f} s)", flush=True)
        except Exception:
            failed.append(case)
            print(f"{case}: FAILED\n{traceback.format_exc()}", flush=True)
    print("failed:", json.dumps(failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
