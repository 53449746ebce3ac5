# Conversations whose windows of eight tokens have all labels, some or none: prompts and responses are short or long.
import json
import random

draw = random.Random(1)
for _ in range(400):
    prompt, response = draw.choice([1, 30]), draw.choice([5, 25])
    text = "".join(draw.choices("abcdefghijklmnopqrstuvwxyz ", k=prompt + response))
    print(json.dumps({"prompt": text[:prompt], "response": text[prompt:]}))
