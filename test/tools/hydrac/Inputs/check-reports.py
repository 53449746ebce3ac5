# Holds the reports of plans against independent sums. Each line of standard input: the name of a model and flags of
# hydrac. Arguments: the folder of models, a folder to write in.
import json
import subprocess
import sys

models, folder = sys.argv[1:]


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


def steps(blocks, times=1):
    """All steps with how often they run; of a switch each case once."""
    for block in blocks:
        if "step" in block:
            yield block["step"], times
        elif "loop" in block:
            yield from steps(block["loop"]["blocks"], times * block["loop"]["count"])
        else:
            for case in block["switch"]["cases"]:
                yield from steps(case["blocks"], 0)


def near(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1)


def check_costs(costs, plan):
    for program in costs["programs"]:
        total = program["total"]
        for group in ("by_phase", "by_class", "by_layer", "by_module"):
            for amount in ("flops", "bytes", "microseconds"):
                parts = sum(part[amount] for part in program[group].values())
                assert near(parts, total[amount]), (program["name"], group, amount)
    for program, written in zip(costs["programs"], plan["programs"]):
        if "switch" not in json.dumps(written["blocks"]):
            flops = sum(step["cost"]["flops"] * times for step, times in steps(written["blocks"]))
            assert near(flops, program["total"]["flops"]), program["name"]
        for step, _ in steps(written["blocks"]):
            if "phase_flops" in step:
                assert sum(step["phase_flops"]) == step["cost"]["flops"], step
            if "layer" in step:
                assert step["path"].split(".")[1] == str(step["layer"]), step
            assert step["location"], step
            assert "path" in step or step["op_class"] not in ("gemm", "attention"), step
    

def check_forward(costs, model):
    programs = {program["name"]: program["by_phase"] for program in costs["programs"]}
    if "eval" not in programs:
        return
    train = programs.get("train") or programs["accumulate"]
    forward, held_out = train["forward"]["flops"], programs["eval"]["forward"]["flops"]
    # Held-out text has no use for what routers lose.
    extra = 1e-4 * held_out if model == "hydra" else 0
    assert 0 <= forward - held_out <= extra, (forward, held_out)
    assert train["backward"]["flops"] > 1.5 * forward


def check_stages(memory, program, over_time):
    stages = program["stages"]
    assert [stage["stage"] for stage in stages[:2]] == ["model", "batch"], stages
    held = sum(memory["persistent"].values())
    assert stages[0]["live_bytes"] == held, stages
    assert sum(stage["change_bytes"] for stage in stages) == stages[-1]["live_bytes"], stages
    at_peak = sum(program["at_peak"].values())
    assert max(stage["peak_bytes"] for stage in stages) == held + at_peak, stages
    # All that came to life dies.
    live, most, before = 0, 0, 0.0
    for event in over_time["events"]:
        assert event["microseconds"] >= before, event
        live, before = live + event["bytes"], event["microseconds"]
        most = max(most, live)
    assert live == 0 and most == at_peak, (program["name"], live, most)


def check_memory(memory, timeline):
    for program, over_time in zip(memory["programs"], timeline):
        at_peak = sum(program["at_peak"].values())
        assert at_peak + program["unused_at_peak"] == program["peak_bytes"], program["name"]
        assert at_peak == max(block["live_bytes"] for block in over_time["blocks"])
        assert at_peak <= program["live_bytes"] <= program["peak_bytes"] <= memory["transient_bytes"]
        check_stages(memory, program, over_time)
        for category, most in program["largest_value"].items():
            assert most > 0, category
        for value in program["largest"]:
            assert value["op"] and value["phase"] and value["path"], value
    held = sum(memory["persistent"].values())
    assert held + memory["persistent_unused"] == memory["persistent_bytes"], held


for line in sys.stdin:
    model, *flags = line.split()
    plan = folder + "/plan.fb"
    command = ["hydrac", f"{models}/{model}.mlir", *flags]
    costs = json.loads(run(*command, "--cost-report=json", "-o", plan))
    check_costs(costs, json.loads(run("hydra-inspect", plan, "--steps", "--json")))
    check_forward(costs, model)
    timeline = folder + "/timeline.json"
    memory = json.loads(run(*command, "--memory-report=json", f"--memory-timeline={timeline}"))
    with open(timeline) as file:
        check_memory(memory, json.load(file))
    print("right:", line.strip())
