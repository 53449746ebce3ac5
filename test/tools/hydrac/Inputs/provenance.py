# Holds what a plan of llama (tiny) says of its tensors and steps, as hydra-inspect --json writes it, against the model.
import json
import sys

with open(sys.argv[1]) as file:
    plan = json.load(file)
tensors = plan["tensors"]
train = next(program for program in plan["programs"] if program["name"] == "train")
steps = [block["step"] for block in train["blocks"]]

for step in steps:
    assert step["location"].split("/")[-1].startswith("llama.mlir:"), step
    if "layer" in step:
        assert step["path"].startswith(f"layers.{step['layer']}."), step

# What a step writes is where the step is, unless it is a part of several.
made = {}
for step in steps:
    for argument in step["args"]:
        if argument["access"] == "write":
            made.setdefault(argument["tensor"], step)
weights = [i for i, step in made.items() if step["name"] == "matmul" and tensors[i]["category"] == "grad"]
assert len(weights) == 2 * 4 + 1, weights # qkv, o, gate and up, down of two layers; the head
for number in weights:
    assert tensors[number]["path"] == made[number]["path"], tensors[number]

# Parameters are where they are read.
paths = {tensor["name"]: tensor.get("path") for tensor in tensors if tensor["category"] == "param"}
assert paths["layers.1.down"] == "layers.1.mlp.down", paths
assert paths["lm_head"] == "lm_head", paths

categories = {tensor["category"] for tensor in tensors}
assert {"param", "grad", "opt_state", "act.embed", "act.norm", "act.attn", "act.attn_out", "act.ffn", "act.grad",
        "logits", "workspace", "other"} <= categories, categories
passes = {step["pass"] for step in steps if "pass" in step}
assert {"hydra-fuse-qkv", "hydra-differentiate", "hydra-chunk-linear-ce", "hydra-form-fusions",
        "hydra-recompute"} <= passes, passes
assert passes <= set(plan["header"]["passes"]), passes
