"""Runs of hydra-run beside which something fails. Usage: survive.py FOLDER, which holds plan.fb and accum.fb."""
import array
import os
import shutil
import subprocess
import sys
import time

os.chdir(sys.argv[1])
S = 16
good = [(i * i + 7 * i) % 256 for i in range(2000)]


def write(name, tokens):
    with open(name, "wb") as file:
        file.write(array.array("H", tokens).tobytes())


def command(plan, data, *more):
    shutil.rmtree("run", ignore_errors=True)
    return ["hydra-run", plan, "--data", data, "--tokenizer", "uint16", "--save", "run", *more]


def run(plan, data, *more, **options):
    options.setdefault("stdout", subprocess.DEVNULL)
    return subprocess.run(command(plan, data, *more), stderr=subprocess.PIPE, text=True, **options)


def saved():
    return sorted(os.listdir("run"))


def check(what, result, status, steps, part):
    lines = [line for line in result.stderr.splitlines() if not line.endswith("initial parameters of seed 0")]
    assert result.returncode == status and len(lines) == 1 and part in lines[0], (what, result)
    assert saved() == [f"step-{step:08}" for step in steps], (what, saved())
    print(f"{what}: status {status},", f"step {steps[-1]} saved" if steps else "nothing saved")


def same_as_without(plan, steps):
    """What was saved is what a run of so many steps on good text saves."""
    os.rename("run", "saved")
    assert run(plan, "good", "--steps", str(steps)).returncode == 0
    for name in ("model", "optimizer"):
        path = f"step-{steps:08}/{name}.safetensors"
        with open(f"saved/{path}", "rb") as a, open(f"run/{path}", "rb") as b:
            assert a.read() == b.read(), path
    shutil.rmtree("saved")


write("good", good)
write("held-out", good[:1900] + [256] + good[1901:])
check("a bad token in the held-out tenth", run("plan.fb", "held-out", "--steps", "6"), 1, [6], "token 1900 is 256")
same_as_without("plan.fb", 6)
check("a bad token in the held-out tenth, measured every 2 steps",
      run("plan.fb", "held-out", "--steps", "6", "--eval-every", "2"), 1, [2], "token 1900 is 256")


# The batch that a window of the text is in follows from the seed: one that accumulation meets inside of a step.
for window in range(20, 112):
    bad = window * S + 1
    write("text", good[:bad] + [256] + good[bad + 1 :])
    result = run("plan.fb", "text", "--steps", "100", "--eval-batches", "1")
    step = int(saved()[0][5:]) if saved() else 0
    if step > 3 and step % 3 != 0:
        break
check("a bad token in the text", result, 1, [step], f"token {bad} is 256")
same_as_without("plan.fb", step)
check("a bad token in the text, 3 batches a step", run("accum.fb", "text", "--steps", "100"), 1, [step // 3],
      f"token {bad} is 256")
same_as_without("accum.fb", step // 3)

write("text", good)
process = subprocess.Popen(command("plan.fb", "text", "--steps", "1000000000", "--log", "log"),
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
while not os.path.exists("log") or os.path.getsize("log") < 2000:
    time.sleep(0.01)
os.truncate("text", 100)
error = process.communicate(timeout=60)[1]
with open("log") as file:
    end = file.read().splitlines()[-1]
assert process.returncode == 1 and error.count("\n") == 2 and "text: has become shorter" in error, error
assert end == f'{{"event":"end","step":{int(saved()[-1][5:])},"reason":"error"}}', (end, saved())
print("no text any more: status 1, all its steps saved")

write("text", [256] * 2000)
check("a bad token in the first batch", run("plan.fb", "text", "--steps", "6"), 1, [], "is 256")

check("a full disk under the log", run("plan.fb", "good", "--steps", "6", "--log", "/dev/full"), 0, [6],
      "cannot write the log /dev/full: No space left on device; training goes on without it")
with open("/dev/full", "w") as full:
    check("a full disk under standard output", run("plan.fb", "good", "--steps", "6", stdout=full), 0, [6],
          "cannot write to standard output: No space left on device; the run goes on without it")
result = run("plan.fb", "good", "--steps", "6", preexec_fn=lambda: os.close(1), stdout=None)
check("standard output closed", result, 0, [6], "cannot write to standard output: Bad file descriptor")
read, written = os.pipe()
os.close(read)
check("nobody reads standard output", run("plan.fb", "good", "--steps", "6", stdout=written), 0, [6],
      "cannot write to standard output: Broken pipe")
