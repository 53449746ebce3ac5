"""What policies make of a run, computed again from what its log says of losses and norms.

policies.py clip LOG FACTOR LEAST MOST FIRST: the bound of every step; FIRST: --clip, or 0.
policies.py spike LOG FACTOR STEPS RATE LR: the learning rate of every step; prints the steps that were spikes.
policies.py filter LOG FACTOR: the steps that are left out; prints them.
policies.py cooldown LOG END: where the decay begins, from the held-out losses; prints it and its end.
policies.py start LOG LOSS FROM: the step before which the mean loss was first below; prints it.
policies.py labels LOG FACTOR FIRST: that steps without labels, whose loss is at most 0.1, move neither mean losses nor bounds."""
import json
import struct
import sys

what, path, *numbers = sys.argv[1:]
numbers = [float(n) for n in numbers]
events = [json.loads(line) for line in open(path)]
steps = {e["step"]: e for e in events if e["event"] == "step"}
steps = [steps[s] for s in sorted(steps)]
assert [s["step"] for s in steps] == list(range(1, len(steps) + 1))


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def moved(mean, value, share):
    return value if mean is None else (1 - share) * mean + share * value


if what == "clip":
    factor, least, most, first = numbers
    mean = first / factor if first > 0 else None
    for step in steps:
        bound = None if mean is None else min(max(factor * mean, least), most)
        assert step.get("clip") == bound, (step["step"], step.get("clip"), bound)
        mean = moved(mean, step["grad_norm"], 0.05)
    assert len({s.get("clip") for s in steps}) > len(steps) // 2, "a bound that stays"
elif what == "spike":
    factor, count, rate, lr = numbers
    mean, slow, spikes = None, 0, []
    for step in steps:
        expected = lr * rate if step["step"] <= slow else lr
        assert step["learning_rate"] == expected, (step["step"], step["learning_rate"], expected)
        if mean is not None and step["loss"] > factor * mean:
            slow = step["step"] + count
            spikes.append(step["step"])
        mean = moved(mean, step["loss"], 0.1)
    print("spikes", spikes)
elif what == "labels":
    factor, first = numbers
    mean, bound = None, first / factor
    for step in steps:
        assert step["clip"] == factor * bound, (step["step"], step["clip"], factor * bound)
        if step["loss"] > 0.1:
            mean, bound = moved(mean, step["loss"], 0.1), moved(bound, step["grad_norm"], 0.05)
        assert step.get("loss_mean") is None if mean is None else abs(step["loss_mean"] - mean) < 1e-9 * mean, step
    without = [s["step"] for s in steps if s["loss"] <= 0.1]
    assert 3 < len(without) < len(steps) - 3, without
elif what == "filter":
    factor, = numbers
    mean, filtered = None, []
    for step in steps:
        limit = None if mean is None else factor * mean
        above = limit is not None and single(step["loss"]) > single(limit)
        filtered += [step["step"]] if above else []
        mean = moved(mean, limit if above else step["loss"], 0.1)
    assert filtered == sorted({e["step"] for e in events if e["event"] == "skipped"}), filtered
    print("filtered", filtered)
elif what == "cooldown":
    end, = numbers
    fast = slow = None
    rises = 0
    for loss in (e for e in events if e["event"] == "eval"):
        fast, slow = moved(fast, loss["held_out_loss"], 0.1), moved(slow, loss["held_out_loss"], 0.02)
        if loss["step"] > end / 2 and (fast - slow) / slow > 0.05:
            rises += 1
        if rises == 3:
            print("decay from", loss["step"], "to", loss["step"] + int((end - loss["step"]) / 2))
            break
elif what == "start":
    bound, least = numbers
    mean = None
    for step in steps:
        mean = moved(mean, step["loss"], 0.05)
        if mean < bound and step["step"] >= least:
            print("begins at", step["step"])
            break
