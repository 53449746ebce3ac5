"""Ends ranks of hydra-run at bad moments. Usage: ranks-faults.py PLAN OTHER_PLAN CUT_PLAN WIDE_PLAN DATA FOLDER

All are plans for two ranks but WIDE_PLAN, which is for three; those of CUT_PLAN hold parts of the parameters, and save together. Each case prints a line: what was done, the status, and
how many lines the run wrote to standard error.
"""
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time

plan, other_plan, cut_plan, wide_plan, data, folder = sys.argv[1:]
random.seed(1)
SECONDS_TO_GO = 5  # how long others may take after one rank has died


def command(save, steps, *more, plan=plan, data=data, every=1, batches=1):
    return ["hydra-run", plan, "--data", data, "--eval-batches", str(batches),
            "--steps", str(steps), "--log-every", "1", "--threads", "1", "--save", save,
            "--save-every", str(every), "--keep", "2", *more]


def start(words, **options):
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            **options)


def newest(save):
    names = [n for n in os.listdir(save) if n.startswith("step-")] if os.path.isdir(save) else []
    return int(max(names)[5:]) if names else 0


def wait_for_step(save, step, process):
    deadline = time.time() + 120
    while newest(save) < step:
        assert time.time() < deadline, f"no checkpoint of step {step} in {save}"
        if process.poll() is not None:
            sys.exit(f"ended by itself with {process.returncode}: {process.stderr.read()}")
        time.sleep(0.005)


def environment(pid):
    """The variables of a process, which may be gone."""
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(line.split("=", 1) for line in file.read().decode().split("\0") if "=" in line)
    except OSError:
        return {}


def children(process):
    """The ranks of a launcher, by number."""
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        pids = [int(word) for word in file.read().split()]
    return {int(environment(pid).get("RANK", -1)): pid for pid in pids}


def alive(pid):
    try:
        os.kill(pid, 0)
        return True
    except OSError:
        return False


def end(process, pids=(), seconds=SECONDS_TO_GO):
    """Waits for the end; returns what went to standard error."""
    begin = time.time()
    try:
        _, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        sys.exit("does not end: " + process.communicate()[1])
    took = time.time() - begin
    assert took < seconds, f"took {took:.1f} s: {errors}"
    for pid in pids:
        assert not alive(pid), f"process {pid} is left"
    return [line for line in errors.splitlines() if not line.endswith("initial parameters of seed 0")]


def report(name, process, lines, expected):
    assert len(lines) == 1 and re.search(expected, lines[0]), f"{name}: {lines}"
    print(f"{name}: status {process.returncode}, one line")


def fresh(name):
    path = os.path.join(folder, name)
    shutil.rmtree(path, ignore_errors=True)
    return path


# kill -9 while the ranks start and find each other, when nothing is saved.
for attempt in range(8):
    process = start(["hydra-run", plan, "--ranks", "2", "--steps", str(10**9), "--threads", "1"])
    ranks = []
    while len(ranks) < 2:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            ranks = [int(word) for word in file.read().split()]
    time.sleep(random.uniform(0, 0.1))
    os.kill(ranks[attempt % 2], signal.SIGKILL)
    lines = [line for line in end(process, ranks) if "random tokens" not in line]
    assert process.returncode != 0
    assert len(lines) == 1 and re.search(
        rf"^hydra-run: rank {attempt % 2} ?(\(.*\))? (died|was ended by signal 9)", lines[0]), lines
print("killed at the start")

# The launcher is killed: the ranks save and stop.
save = fresh("orphans")
process = start(command(save, 10**9, "--ranks", "2"))
wait_for_step(save, 2, process)
ranks = children(process)
process.kill()
deadline = time.time() + 20
while any(alive(pid) for pid in ranks.values()):
    assert time.time() < deadline, "ranks outlive their launcher"
    time.sleep(0.01)
process.communicate()
print("launcher killed: no rank is left")

# A rank that is stopped.
for victim in (0, 1):
    save = fresh("stopped")
    process = start(command(save, 10**9, "--ranks", "2", "--rank-timeout", "2"))
    wait_for_step(save, 2, process)
    ranks = children(process)
    os.kill(ranks[victim], signal.SIGSTOP)
    report(f"rank {victim} stopped", process, end(process, ranks.values(), 2 * 1.25 + 2 + 5),
           rf"rank {victim} \(host .*, pid {ranks[victim]}\).* has not answered for 2 s; rank {1 - victim} waits in "
           r"(a decision of all ranks|what all ranks hand in|"
           r"all_\w+ \d+ \((layer \d+, )?\S*llama\.mlir:\d+\) over data, [\d.]+ \w+)"
           rf"; resume from .*step-")

# Of three ranks, those two are killed that would say so.
save = fresh("speakers")
process = start(command(save, 10**9, "--ranks", "3", plan=wide_plan))
wait_for_step(save, 2, process)
ranks = children(process)
for rank in (0, 1):
    os.kill(ranks[rank], signal.SIGKILL)
report("ranks 0 and 1 killed", process, end(process, ranks.values()),
       rf"rank [01] \(pid ({ranks[0]}|{ranks[1]})\) was ended by signal 9 \(Killed\); resume from .*step-")

# Rank 0 is stopped before the others have reached it.
process = start(["hydra-run", wide_plan, "--ranks", "3", "--steps", str(10**9), "--threads", "1", "--rank-timeout", "2"])
first = []
while not first:
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        first = [int(word) for word in file.read().split()][:1]
os.kill(first[0], signal.SIGSTOP)
report("rank 0 stopped at the start", process, end(process, first, 2 + 4 + 5), "rank 1: .*rank 0")

# Signals: once all stop after the same step, saved; twice they are gone.
for name, target in (("SIGINT", "the launcher"), ("SIGTERM", "the launcher"), ("SIGTERM", "rank 1")):
    save = fresh("signal")
    process = start(command(save, 10**9, "--ranks", "2", every=10**6))
    deadline = time.time() + 60
    while not re.match("step +2 ", process.stdout.readline()):
        assert time.time() < deadline and process.poll() is None, end(process)
    pid = process.pid if target == "the launcher" else children(process)[1]
    os.kill(pid, getattr(signal, name))
    lines = end(process)
    assert len(lines) == 1 and f"after step {newest(save)};" in lines[0], (lines, newest(save))
    print(f"{name} to {target}: status {process.returncode}, saved")
save = fresh("twice")
process = start(command(save, 10**9, "--ranks", "2"))
wait_for_step(save, 1, process)
ranks = children(process)
os.kill(ranks[1], signal.SIGSTOP)  # so that rank 0 cannot heed the first one
for _ in range(2):
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
lines = end(process, ranks.values())
assert not lines, lines
print(f"SIGINT twice: status {process.returncode}")


# Started by hand, as torchrun does it.
def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def by_hand(rank, size, port, save, *more, preexec_fn=None, **options):
    variables = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1",
                     MASTER_PORT=str(port))
    return start(command(save, 4, "--rank-timeout", "5", *more, **options), env=variables, preexec_fn=preexec_fn)


def both(name, first, second, expected):
    lines = end(first, seconds=20) + end(second, seconds=20)
    assert first.returncode == second.returncode == 1, (first.returncode, second.returncode, lines)
    report(name, first, lines, expected)


port, save = free_port(), fresh("hand")
one, two = by_hand(0, 2, port, save), by_hand(1, 2, port, save)
lines = end(one, seconds=20) + end(two, seconds=20)
assert not lines and one.returncode == two.returncode == 0 and newest(save) == 4, lines
print("by hand: status 0")
port = free_port()
both("another number of ranks", by_hand(0, 2, port, fresh("hand")),
     by_hand(1, 3, port, fresh("hand")),
     r"rank 1 \(host .*\) counts 3 ranks, rank 0 \(host .*\) counts 2")
port = free_port()
both("another plan", by_hand(0, 2, port, fresh("hand")),
     by_hand(1, 2, port, fresh("hand"), plan=other_plan),
     r"rank 0 \(host .*\) has the plan with hash \w+, rank 1 \(host .*\) has \w+")
port = free_port()
both("another flag", by_hand(0, 2, port, fresh("hand")),
     by_hand(1, 2, port, fresh("hand"), "--seed", "3"),
     r"rank 0 \(host .*\) has as its (data|seed) \w+, rank 1")
port = free_port()
both("a wrong flag", *(by_hand(rank, 2, port, fresh("hand"), "--stpes", "3") for rank in range(2)),
     r"^hydra-run: unknown flag '--stpes'; did you mean '--steps'\?$")
port = free_port()
both("a number of ranks beside theirs", *(by_hand(rank, 2, port, fresh("hand"), "--ranks", "3") for rank in range(2)),
     "^hydra-run: --ranks=3, but WORLD_SIZE=2 in the environment")
port = free_port()
both("a wrong flag of rank 1", by_hand(0, 2, port, fresh("hand")),
     by_hand(1, 2, port, fresh("hand"), "--stpes", "3"),
     r"^hydra-run: rank 1 \(host .*\): unknown flag '--stpes'")
port = free_port()
for rank in range(2):  # under one name, in folders of their own
    os.makedirs(os.path.join(folder, f"node{rank}"), exist_ok=True)
    with open(data, "rb") as text, open(os.path.join(folder, f"node{rank}", "measured"), "wb") as part:
        part.write(text.read()[1000 * rank:1000 * rank + 2000])
both("another text to measure",
     *(by_hand(rank, 2, port, fresh("hand"), "--eval-data", "own=measured",
               preexec_fn=lambda rank=rank: os.chdir(os.path.join(folder, f"node{rank}"))) for rank in range(2)),
     r"rank 0 \(host .*\) has as the text own \d+ batches of .*, rank 1 \(host .*\) has \d+ batches of")
one = by_hand(0, 2, free_port(), fresh("hand"))
report("a rank does not come", one, end(one, seconds=10), "1 of 2 ranks came within 5 s; missing: 1")
with socket.socket() as taken:
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    one = by_hand(0, 2, taken.getsockname()[1], fresh("hand"))
    report("the port is taken", one, end(one), "cannot listen at 127.0.0.1:.*Address already in use")

# The disk of one rank is full, for which a limit on the size of its files stands: each checkpoint costs a line, and the
# last one the run.
port, save = free_port(), fresh("hand")
one = by_hand(0, 2, port, save, plan=cut_plan, every=2)
two = by_hand(1, 2, port, save, plan=cut_plan, every=2,
              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40000, 40000)))
lines = end(one, seconds=20) + end(two, seconds=20)
assert one.returncode == two.returncode == 1 and len(lines) == 2, lines
for line, goes_on in zip(lines, ("; training goes on", "")):
    assert re.search(rf"rank 1 \(host .*\): cannot write .*: File too large{goes_on}$", line), lines
assert os.listdir(save) == [], os.listdir(save)
print("a full disk of rank 1: status 1, no checkpoint is left")

# No folder to save into.
blocked = os.path.join(folder, "blocked")
open(blocked, "w").close()
for what in (plan, cut_plan):
    process = start(command(os.path.join(blocked, "run"), 4, "--ranks", "2", plan=what))
    report("no folder to save into", process, end(process, seconds=20), "cannot create the folder .*: Not a directory")

# What one rank alone meets: all stop after the same step, which is saved.
text = bytearray(open(data, "rb").read()[:8000])


def with_bad_tokens(name, position):
    """Tokens of 16 bits, one of which no model of 256 tokens knows."""
    path = os.path.join(folder, name)
    words = bytearray(2 * len(text))
    words[::2] = text
    words[2 * position:2 * position + 2] = (50999).to_bytes(2, "little")
    with open(path, "wb") as file:
        file.write(words)
    return path


save = fresh("tokens")
for name, position, steps in (("the text", 1000, 10**6), ("the held-out text", len(text) - 300, 6)):
    bad = with_bad_tokens("bad.bin", position)
    save = fresh("tokens")
    process = start(command(save, steps, "--ranks", "2", "--tokenizer", "uint16", data=bad,
                            every=10**6, batches=10**6))
    lines = end(process, seconds=300)
    assert len(lines) == 1 and "50999" in lines[0], lines
    assert newest(save) > 0, lines
    print(f"a bad token in {name}: status {process.returncode}, saved")

# A full disk under the log costs one line; under standard output, too.
save = fresh("full")
process = start(command(save, 4, "--ranks", "2", "--log", "/dev/full"))
report("a full disk under the log", process, end(process, seconds=60), "cannot write the log /dev/full")
