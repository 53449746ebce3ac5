"""Kills ranks of hydra-run at any moment. Usage: ranks-kills.py PLAN DATA FOLDER [KILLS]

PLAN is for two ranks. Each run goes on from the newest checkpoint, saves every few steps, and loses a rank
after a random time: while it starts, reads, trains or saves. Whatever it was, one line names the rank, all
processes are gone within five seconds, and the line names the newest checkpoint that there is. At the end
the files are those of a run that was not interrupted.
"""
import filecmp
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time

plan, data, folder = sys.argv[1:4]
kills = int(sys.argv[4]) if len(sys.argv) > 4 else 10
random.seed(int(os.environ.get("HYDRA_TEST_SEED", "1")))
save = os.path.join(folder, "killed")
shutil.rmtree(save, ignore_errors=True)


def command(into, steps, every):
    return ["hydra-run", plan, "--ranks=2", "--data", data, "--eval-batches", "1", "--steps", str(steps),
            "--threads", "1", "--save", into, "--save-every", str(every), "--keep", "2", "--resume", "auto"]


def newest():
    names = [n for n in os.listdir(save) if n.startswith("step-")] if os.path.isdir(save) else []
    return max(names, default=None)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def ranks_of(process):
    """By number: they are started in that order."""
    while True:
        with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
            found = [int(word) for word in file.read().split()]
        if len(found) == 2:
            return found


def kill_one(number, longest):
    """Returns what went wrong, and how long it took."""
    process = subprocess.Popen(command(save, 10**9, 5), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    ranks = ranks_of(process)
    time.sleep(random.uniform(0, longest))
    victim = random.randrange(2)
    os.kill(ranks[victim], signal.SIGKILL)
    begin = time.time()
    try:
        _, errors = process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        return f"kill {number}: it does not end", 60
    took = time.time() - begin
    left = [pid for pid in ranks if alive(pid)]
    lines = [line for line in errors.splitlines() if "initial parameters" not in line]
    found = re.fullmatch(rf"hydra-run: rank {victim}(?: \(.*?\))? (?:died(?: after step (\d+))?: its connection broke off"
                         r"|was ended by signal 9 \(Killed\))(?:; resume from (.*)|; there is no checkpoint)?", "\n".join(lines))
    problems = []
    if process.returncode == 0 or took > 5 or left or not found:
        problems.append(f"status {process.returncode} after {took:.1f} s, {len(left)} processes left")
    elif found[2] and os.path.basename(found[2]) != newest():
        problems.append(f"the newest checkpoint is {newest()}")
    elif found[1] and newest() and int(found[1]) < int(newest()[5:]):
        problems.append(f"there is {newest()}")
    return (f"kill {number} of rank {victim}: {'; '.join(problems)}: {lines}" if problems else None), took


failures, slowest = [], 0
for number in range(kills):
    # Most runs get to training; some do not even begin.
    failure, took = kill_one(number, random.choice((0.3, 1.5, 2.5)))
    slowest = max(slowest, took)
    if failure:
        failures.append(failure)
        print(failure)
last = int((newest() or "step-0")[5:]) + 5
whole = os.path.join(folder, "whole")
shutil.rmtree(whole, ignore_errors=True)
subprocess.run(command(save, last, 5), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
subprocess.run(command(whole, last, last), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
one, other = (os.path.join(path, f"step-{last:08}") for path in (save, whole))
names = sorted(os.listdir(other))
assert names == sorted(os.listdir(one)) and filecmp.cmpfiles(one, other, names, shallow=False)[0] == names
print(f"{kills} kills, {len(failures)} failures, {slowest:.1f} s at most; step {last} has the bytes of a whole run")
