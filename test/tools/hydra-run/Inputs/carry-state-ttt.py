"""TTT-Linear in one call and in several: carry-state-ttt.py HYDRA-RUN FOLDER; the plans lie in the folder.

begin.fb gives the state before the first token; whole, long, short and one.fb read 48, 32, 16 tokens and one;
logits.fb scores 48 tokens without a state, online.fb (b0 = 1) six.
"""
import array

from calls import expect, ids, numbers, real, rows_of, run

B, V = 2, 97
tokens = [[(i * i * 7 + 3 * i + b * 11) % V for i in range(48)] for b in range(B)]


def go_on(plan, first, count, state, rows=tokens):
    out = run(plan, {"tokens": ids(rows, first, count), "before": state, "position": real(first)})
    return rows_of(out["logits"]), out["states"]


start = run("begin", None)["states"]
whole, end = go_on("whole", 0, 48, start)
first, middle = go_on("long", 0, 32, start)
second, end2 = go_on("short", 32, 16, middle)
for b in range(B):
    expect("48 tokens are 32 and 16", whole[b], first[b] + second[b], 1e-5)
expect("and leave the same weights", numbers(end), numbers(end2), 1e-5)
plain = numbers(run("logits", {"tokens": ids(tokens, 0, 48)})["logits"])
expect("from the first weights it is the model", whole[0] + whole[1], plain, 0.0)

state, online = start, [array.array("f") for _ in range(B)]
for i in range(6):
    scores, state = go_on("one", i, 1, state)
    for b in range(B):
        online[b] += scores[b]
expected = numbers(run("online", {"tokens": ids(tokens, 0, 6)})["logits"])
expect("token by token is chunks of one", online[0] + online[1], expected, 1e-5)

other = [tokens[0], tokens[1][::-1]]
alone, _ = go_on("whole", 0, 48, start, other)
expect("rows of a batch do not meet", whole[0], alone[0], 0.0)
late = [tokens[0][:40] + [5] * 8, tokens[1]]
changed, _ = go_on("whole", 0, 48, start, late)
expect("the future changes nothing", whole[0][: 40 * V], changed[0][: 40 * V], 0.0)
