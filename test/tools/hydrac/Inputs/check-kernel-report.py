# Holds the report of kernels against their machine code and the steps of the plan. Arguments: the report and what
# hydra-inspect --kernels --json and --steps --json say of the same plan, as files.
import json
import sys

report, inspected, steps = (json.load(open(path)) for path in sys.argv[1:])


def launches(blocks, times, counts):
    for block in blocks:
        if "step" in block:
            name = block["step"].get("kernel")
            if name is not None:
                counts[name] = counts.get(name, 0) + times
        elif "loop" in block:
            launches(block["loop"]["blocks"], times * block["loop"]["count"], counts)
        else:
            raise AssertionError("a switch, whose longest case this does not know")
    return counts


code = {kernel["name"]: kernel for kernel in inspected["kernels"]}
seen = {}
for program, written in zip(report["programs"], steps["programs"], strict=True):
    assert program["name"] == written["name"]
    times = max(program["runs_a_step"], 1)
    found = {kernel["name"]: kernel["launches"] for kernel in program["kernels"]}
    assert found == launches(written["blocks"], times, {}), program["name"]
    assert program["launches"] == sum(found.values())
    for kernel in program["kernels"]:
        own = code[kernel["name"]]
        assert kernel["registers"] == own["registers"], kernel
        assert kernel["stack_bytes"] == own["stack_bytes"], kernel
        assert kernel["dynamic_shared_bytes"] == own["shared_bytes"], kernel
        assert kernel["threads"] == own["block"][0], kernel
        assert seen.setdefault(kernel["name"], {**kernel, "launches": 0}) == {**kernel, "launches": 0}
assert seen.keys() == code.keys()
total = report["total"]
assert total["kernels"] == len(code)
for amount in ("spill_store_bytes", "spill_load_bytes"):
    assert total[amount] == sum(kernel[amount] for kernel in seen.values())
spilling = [kernel for kernel in seen.values() if kernel["spill_store_bytes"] or kernel["spill_load_bytes"]]
assert total["spilling"] == len(spilling)
assert total["warnings"] == len(report["warnings"]) + sum(len(kernel["warnings"]) for kernel in seen.values())
assert all(kernel["registers"] > 0 for kernel in seen.values())
print("right:", total["kernels"], "kernels")
