"""Weights of a Llama with a table of V times 64 numbers, as a file mostly of holes: large.py DIR V."""
import json
import pathlib
import struct
import sys

folder, rows = pathlib.Path(sys.argv[1]), int(sys.argv[2])
layer = "model.layers.0."
shapes = {"model.embed_tokens.weight": [rows, 64], "model.norm.weight": [64], "lm_head.weight": [rows, 64],
          layer + "input_layernorm.weight": [64], layer + "post_attention_layernorm.weight": [64],
          layer + "mlp.gate_proj.weight": [64, 64], layer + "mlp.up_proj.weight": [64, 64], layer + "mlp.down_proj.weight": [64, 64],
          **{f"{layer}self_attn.{x}_proj.weight": [64, 64] for x in "qkvo"}}
header, at = {}, 0
for name, shape in shapes.items():
    size = 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
    header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
    at += size
text = json.dumps(header).encode()
folder.mkdir()
with open(folder / "model.safetensors", "wb") as file:
    file.write(struct.pack("<Q", len(text)) + text)
    file.truncate(8 + len(text) + at)
config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_act": "silu", "hidden_size": 64, "intermediate_size": 64,
          "num_hidden_layers": 1, "num_attention_heads": 1, "num_key_value_heads": 1, "vocab_size": rows, "rms_norm_eps": 1e-05,
          "rope_theta": 10000.0, "tie_word_embeddings": False}
(folder / "config.json").write_text(json.dumps(config))
