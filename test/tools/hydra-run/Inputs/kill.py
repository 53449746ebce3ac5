"""Ends runs of hydra-run at bad moments. Usage: kill.py PLAN DATA FOLDER PLAN-OF-TWO-RANKS"""
import os
import random
import resource
import signal
import subprocess
import sys
import time

plan, data, folder = sys.argv[1:4]
random.seed(1)

# Whoever runs the tests by nohup ignores SIGHUP, and what ignores it leaves that to its children.
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def command(save, steps, *more):
    return ["hydra-run", plan, "--data", data, "--save", save, "--save-every", "1", "--keep", "2",
            "--resume", "auto", "--eval-batches", "1", "--steps", str(steps), "--threads", "1",
            *more]


def start(*arguments, **options):
    return subprocess.Popen(command(*arguments), stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True, **options)


def newest(save):
    names = [n for n in os.listdir(save) if n.startswith("step-")] if os.path.isdir(save) else []
    return int(max(names)[5:]) if names else 0


def wait_for_step(save, step):
    deadline = time.time() + 60
    while newest(save) < step:
        assert time.time() < deadline, f"no checkpoint of step {step} in {save}"
        time.sleep(0.005)


def fail_if_ended(process):
    if process.poll() is not None:
        sys.exit(f"ended by itself with status {process.returncode}: {process.stderr.read()}")


# SIGKILL: after at least one new checkpoint, so that the run gets on, at any point of a save.
save = os.path.join(folder, "killed")
for attempt in range(100):
    before = newest(save)
    process = start(save, 10**9)
    while newest(save) <= before:
        fail_if_ended(process)
        time.sleep(0.001)
    time.sleep(random.uniform(0, 0.02))
    fail_if_ended(process)
    process.kill()
    process.wait()
last = newest(save)
assert last >= 100, last
result = subprocess.run(command(save, last + 2), capture_output=True, text=True)
assert result.returncode == 0, result.stderr
assert sorted(os.listdir(save)) == [f"step-{last + i:08}" for i in (1, 2)], os.listdir(save)
print("killed 100 times, resumed 100 times")

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    save = os.path.join(folder, number.name)
    process = start(save, 10**9)
    wait_for_step(save, 3)
    process.send_signal(number)
    if number == signal.SIGHUP:  # as when a terminal closes: the kernel sends it, then the shell
        process.send_signal(number)
    error = process.communicate()[1]
    assert process.returncode == 128 + number, (process.returncode, error)
    assert f"stopped by signal {int(number)} after step {newest(save)}" in error, error
    subprocess.run(command(save, newest(save) + 1), check=True, stdout=subprocess.DEVNULL)
    print(f"{number.name}: status {process.returncode}, saved and resumed")

# A measurement ends with the run, and its step is saved: between steps, and behind the last one.
large = os.path.join(folder, "large.txt")
with open(data, "rb") as text, open(large, "wb") as to:
    to.write(10 * text.read())
for steps in (10**9, 2):
    save = os.path.join(folder, f"measured-{steps}")
    log = save + ".jsonl"
    run = ["hydra-run", plan, "--data", large, "--save", save, "--threads", "1"]
    process = subprocess.Popen([*run, "--steps", str(steps), "--eval-every", "2", "--log", log],
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.time() + 60
    while not (os.path.exists(log) and '"event":"step","step":2,' in open(log).read()):
        assert time.time() < deadline, "no second step"
        fail_if_ended(process)
        time.sleep(0.005)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    assert process.returncode == 130 and newest(save) == 2, (process.returncode, error)
    assert '"event":"eval"' not in open(log).read()
    subprocess.run([*run, "--resume", "auto", "--steps", "3", "--eval-batches", "1"], check=True,
                   stdout=subprocess.DEVNULL)
print("measurements: interrupted twice, saved and resumed")

# A text that is written while a model is trained ends with the run, and is no sample.
save = os.path.join(folder, "sampled")
log = save + ".jsonl"
run = ["hydra-run", plan, "--data", data, "--eval-batches", "1", "--save", save]
process = subprocess.Popen([*run, "--steps", "2", "--generate", "a", "--tokens", str(10**9),
                            "--sample-every", "1", "--log", log],
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
deadline = time.time() + 60
while not (os.path.exists(log) and '"event":"step","step":1,' in open(log).read()):
    assert time.time() < deadline, "no step"
    fail_if_ended(process)
    time.sleep(0.005)
time.sleep(0.1)
process.send_signal(signal.SIGTERM)
error = process.communicate(timeout=60)[1]
assert process.returncode == 128 + signal.SIGTERM and newest(save) == 1, (process.returncode, error)
assert '"event":"sample"' not in open(log).read()
subprocess.run([*run, "--resume", "auto", "--steps", "2"], check=True, stdout=subprocess.DEVNULL)
print("samples: interrupted, saved and resumed")

# Started by nohup.
save = os.path.join(folder, "nohup")
process = start(save, 10**9, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
wait_for_step(save, 1)
process.send_signal(signal.SIGHUP)
wait_for_step(save, newest(save) + 3)
process.terminate()
process.communicate()
assert process.returncode == 128 + signal.SIGTERM, process.returncode
print("nohup: training went on")

# A second signal while it saves ends it at once; alone, and as several ranks.
for more in ([], ["--ranks=2"]):
    save = os.path.join(folder, "twice" + "".join(more))
    for attempt in range(6):
        process = subprocess.Popen(["hydra-run", sys.argv[4 if more else 1], "--data", data, "--save", save,
                                    "--save-every", "1", "--keep", "2", "--resume", "auto", "--steps", str(10**9),
                                    "--eval-batches", "1", "--threads", "1", *more],
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        wait_for_step(save, newest(save) + 1)
        while not [n for n in os.listdir(save) if n.startswith(".saving-step")]:
            fail_if_ended(process)
        process.send_signal(signal.SIGINT)
        time.sleep(0.005)
        process.send_signal(signal.SIGINT)
        begin = time.time()
        process.communicate()
        assert process.returncode in (-signal.SIGINT, 130), process.returncode
        assert time.time() - begin < 3
        left = [n for n in os.listdir(save) if n.startswith(".")]
        assert not left, left
print("interrupted twice while it saved: nothing of it is left")

# No file may grow beyond a limit that those of a checkpoint exceed: writing fails as on a full disk.
save = os.path.join(folder, "full")
subprocess.run(command(save, 3), check=True, stdout=subprocess.DEVNULL)
limit = os.path.getsize(os.path.join(save, "step-00000003", "model.safetensors")) - 1
process = start(save, 6,
                preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
error = process.communicate()[1]
lines = [line for line in error.splitlines() if "cannot write" in line]
assert process.returncode == 1 and len(lines) == 3, (process.returncode, error)
for step, line in zip((4, 5, 6), lines):
    assert f"cannot write {save}/step-{step:08}/model.safetensors: " in line, line
assert lines[0].endswith("; training goes on") and not lines[-1].endswith("goes on"), error
assert newest(save) == 3 and not [n for n in os.listdir(save) if n.startswith(".")], error
subprocess.run(command(save, 4), check=True, stdout=subprocess.DEVNULL)
print("full disk: training went on, the last good checkpoint is there")
