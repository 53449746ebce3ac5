"""Conversations with a model of random weights. Usage: chat.py FOLDER CACHED WINDOW

FOLDER gets a tokenizer of single characters with the tokens of ChatML; CACHED and WINDOW are plans of the same model, the
one for generating text, the other for training.
"""
import json
import os
import pty
import signal
import subprocess
import sys

folder, cached, window = sys.argv[1:]
characters = "\n" + "".join(map(chr, range(32, 127)))
specials = ["<|im_start|>", "<|im_end|>"]
tokenizer = {
    "version": "1.0",
    "added_tokens": [{"id": 96 + i, "content": name, "special": True} for i, name in enumerate(specials)],
    "decoder": {"type": "Fuse"},
    "model": {"type": "BPE", "vocab": {c: i for i, c in enumerate(characters)}, "merges": []},
}
template = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}"
    "{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)


def write(name, content):
    with open(os.path.join(folder, name), "w") as out:
        json.dump(content, out)


write("tokenizer.json", tokenizer)
write("tokenizer_config.json", {"chat_template": template})


def run(plan, *flags, typed=None):
    command = ["hydra-run", plan, "--tokenizer", folder, "--tokens", "9", *flags]
    result = subprocess.run(command, input=typed, capture_output=True, text=True)
    assert result.returncode == 0, (command, result)
    return result.stdout


def chat(plan, typed, *flags):
    return run(plan, "--chat", *flags, typed=typed)


def generate(prompt, *flags):
    text = run(cached, "--generate", prompt, *flags)
    assert text.startswith(prompt)
    return text[len(prompt) :]


# The first answer is what follows the same prompt, drawn or not; a system text stands in front.
first = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
for flags in (("--temperature", "0"), ("--seed", "7", "--temperature", "1.3", "--top-k", "20"),
              ("--seed", "5", "--temperature", "1.5", "--top-p", "0.9", "--min-p", "0.02", "--repetition-penalty", "1.4")):
    assert chat(cached, "Hi\n", *flags) == generate(first, *flags)
greedy = ("--temperature", "0", "--stop-token", "0")
system = "<|im_start|>system\nBe brief.<|im_end|>\n" + first
assert chat(cached, "Hi\n", "--system", "Be brief.", *greedy) == generate(system, *greedy)

# The second one too, though only what is new is read; empty lines are none, and nothing behind /exit is.
said, one = next(
    (said, one) for said in ("Hi", "You", "Well", "What", "Who", "Ah") if len(one := chat(cached, said + "\n", *greedy)) == 10
)  # no token of it is not shown
two = chat(cached, said + "\n\nAnd you?\n/exit\nNobody reads this\n", *greedy)
assert two.startswith(one)
first = first.replace("Hi", said)
second = first + one[:-1] + "<|im_end|>\n<|im_start|>user\nAnd you?<|im_end|>\n<|im_start|>assistant\n"
assert two[len(one) :] == generate(second, *greedy), (two, generate(second, *greedy))
# Windows that are long enough say the same.
assert chat(window, said + "\n\nAnd you?\n", *greedy) == two
# What was said in all turns is penalised.
penalised = (*greedy, "--repetition-penalty", "1.5")
assert chat(window, said + "\nAnd you?\n", *penalised) == chat(cached, said + "\nAnd you?\n", *penalised)
# A token that was typed is text: what is drawn behind it is another thing.
assert chat(cached, "a<|im_end|>b\n", *greedy) != generate(first.replace(said, "a<|im_end|>b"), *greedy)

# Ctrl-C ends an answer, not the conversation; SIGTERM both.
endless = ["hydra-run", window, "--tokenizer", folder, "--chat", "--tokens", "1000000", "--temperature", "1.5", "--seed", "3"]
endless += ["--stop-token", "99"]


def start():
    process = subprocess.Popen(endless, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"Hi\n")
    process.stdin.flush()
    assert process.stdout.read(1)
    return process


process = start()
process.send_signal(signal.SIGINT)
process.stdin.write(b"/exit\n")
process.stdin.close()
text = process.stdout.read()
assert text.endswith(b"\n") and process.wait() == 0, (text, process.stderr.read())
process = start()
process.send_signal(signal.SIGTERM)
process.stdin.write(b"Nobody reads this\n")
process.stdin.close()
process.stdout.read()
assert process.wait() == 143

# On a terminal a prompt shows that somebody may type.
child, terminal = pty.fork()
if child == 0:
    os.execvp("hydra-run", ["hydra-run", cached, "--tokenizer", folder, "--chat", *greedy, "--tokens", "9"])
shown = b""
while not shown.endswith(b"\n> "):
    shown += os.read(terminal, 1)
os.write(terminal, said.encode() + b"\n")
while not shown.endswith(one.replace("\n", "\r\n").encode() + b"> "):
    shown += os.read(terminal, 1)
os.write(terminal, b"/exit\n")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
print("all right")
