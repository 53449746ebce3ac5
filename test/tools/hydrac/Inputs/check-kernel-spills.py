# No kernel spills registers but those that are known to, and ptxas warns of none. Each line of standard input: the name
# of a model and flags of hydrac; behind a colon the kernels that are known to spill, without the number at their end:
# NAME=BYTES, the most that one of them stores. Arguments: the folder of models, targets.
import json
import subprocess
import sys

models, *targets = sys.argv[1:]
wrong = False
for line in sys.stdin:
    flags, _, known = line.partition(":")
    model, *flags = flags.split()
    known = dict(one.split("=") for one in known.split())
    for target in targets:
        command = ["hydrac", f"{models}/{model}.mlir", *flags, f"--target={target}", "--kernel-report=json"]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, (command, done.stderr)
        report = json.loads(done.stdout)
        warnings, spilled, count = set(report["warnings"]), {}, 0
        for program in report["programs"]:
            for kernel in program["kernels"]:
                count += 1
                warnings |= {f"{kernel['name']}: {warning}" for warning in kernel["warnings"]}
                most = max(kernel["spill_store_bytes"], kernel["spill_load_bytes"])
                if most > 0:
                    name = kernel["name"].rsplit("_", 1)[0]
                    spilled[name] = max(most, spilled.get(name, 0))
        assert count > 0, command
        problems = sorted(warnings)
        problems += [f"{name} spills {most} bytes; known are {known.get(name, 0)}"
                     for name, most in spilled.items() if most > int(known.get(name, 0))]
        problems += [f"{name} spills no more" for name in known if name not in spilled]
        wrong |= bool(problems)
        print("wrong:" if problems else "right:", target, line.strip(), *problems, sep="\n  " if problems else " ")
sys.exit(wrong)
