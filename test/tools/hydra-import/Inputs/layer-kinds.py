"""Writes configurations of Gemma 3: SCALING-one/config.json has layers of one kind, SCALING-two of both, with the same rotary
positions; `mixed` has two kinds of scaling."""
import json
import pathlib

LAYERS, WINDOW = 4, 64  # no text is longer
SCALINGS = {
    "default": {},
    "linear": dict(factor=2.5),
    "dynamic": dict(factor=4.0),
    "llama3": dict(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=64),
    "yarn": dict(factor=4.0, original_max_position_embeddings=8),
    "longrope": dict(factor=2.0, short_factor=[1.0, 1.1, 1.3, 1.7], long_factor=[1.0, 2.0, 5.0, 9.0],
                     original_max_position_embeddings=8),
}


def write(name, kinds, full, sliding):
    config = dict(
        architectures=["Gemma3ForCausalLM"], model_type="gemma3_text", vocab_size=61, hidden_size=16, intermediate_size=8,
        num_hidden_layers=LAYERS, num_attention_heads=2, num_key_value_heads=1, head_dim=8, query_pre_attn_scalar=8,
        initializer_range=0.5, max_position_embeddings=16, sliding_window=WINDOW, layer_types=kinds,
        rope_parameters=dict(full_attention=full, sliding_attention=sliding))
    folder = pathlib.Path(name)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))


def scaled(kind, theta=100.0):
    return dict(rope_type=kind, rope_theta=theta, **SCALINGS[kind])


FULL, SLIDES = "full_attention", "sliding_attention"
for kind in SCALINGS:
    other = dict(rope_type="default", rope_theta=3.0)
    write(f"{kind}-one", [FULL] * LAYERS, scaled(kind), other)
    write(f"{kind}-two", [SLIDES, FULL, SLIDES, FULL], scaled(kind), scaled(kind))
write("mixed", [SLIDES] * 3 + [FULL], dict(scaled("yarn"), factor=2.0), scaled("dynamic", 1e4))
