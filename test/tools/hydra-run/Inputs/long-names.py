"""Names of 100 kB wherever a user or a file can give one. Usage: long-names.py PLAN FOLDER

Every error is one line of at most 600 characters.
"""
import json
import os
import struct
import subprocess
import sys

plan, folder = sys.argv[1:]
name = "a" * 100000


def tensors(file, tensor, shape):
    header = json.dumps({tensor: {"dtype": "F32", "shape": shape, "data_offsets": [0, 4]}}).encode()
    with open(os.path.join(folder, file), "wb") as out:
        out.write(struct.pack("<Q", len(header)) + header + bytes(4))
    return os.path.join(folder, file)


def check(*arguments):
    result = subprocess.run(["hydra-run", *arguments], capture_output=True, text=True)
    lines = [line for line in result.stderr.splitlines() if not line.endswith("initial parameters of seed 0")]
    assert result.returncode == 1 and len(lines) == 1, (arguments, result)
    assert "aaa" in lines[0] and len(lines[0]) <= 600, (len(lines[0]), lines[0][:2000])


check(name)
check(plan, name)
check(plan, "--" + name)
train = (plan, "--steps", "1")
for flag in ("--data", "--inputs", "--outputs", "--weights", "--save", "--resume", "--log", "--tensorboard", "--export",
             "--device", "--lr", "--schedule", "--scalar", "--tokenizer", "--threads", "--seed"):
    check(*train, flag, name)
check(*train, "--scalar", name + "=1")
check(plan, "--generate", name, "--tokenizer", "ids")
check(plan, "--chat", "--chat-template", name)
check(*train, "--weights", tensors("unknown", name, [1]))
check(*train, "--weights", tensors("known", "tok_emb", [1]), "--scalar", name + "=1")
check(*train, "--weights", tensors("misshapen", name, [2]))
check(*train, "--weights", tensors("known", "tok_emb", [1]), "--adapter", name)
print("all cut")
