"""Plans the memory of every preset of every model, without code. Usage: memory.py MODELS"""
import json
import pathlib
import re
import subprocess
import sys

worst = 0.0
for name in ("cs336", "llama", "gpt2"):
    model = pathlib.Path(sys.argv[1], name + ".mlir")
    for preset in re.findall(r'hydra\.preset @"?([\w.-]+)"?', model.read_text()):
        report = subprocess.run(
            ["hydrac", model, f"--preset={preset}", "--batch=4", "--seq=64", "--target=h200",
             "--memory-report=json"], check=True, stdout=subprocess.PIPE, text=True).stdout
        memory = json.loads(report)
        assert memory["arena_bytes"] == memory["persistent_bytes"] + memory["transient_bytes"]
        assert memory["transient_bytes"] == max(p["peak_bytes"] for p in memory["programs"])
        # Alignment weighs in programs of some kilobytes.
        excess = max(p["peak_bytes"] / p["live_bytes"] - 1 for p in memory["programs"]
                     if p["live_bytes"] > 1 << 16)
        print(f"{name} {preset}: {memory['arena_bytes'] / 2**20:.1f} MiB, {100 * excess:.2f}% over live")
        worst = max(worst, excess)
assert worst <= 0.02, worst
print("all within 2%")
