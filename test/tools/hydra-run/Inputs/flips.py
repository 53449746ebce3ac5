#!/usr/bin/env python3
"""flips.py PLAN COUNT COMMAND...: runs the command on copies of a plan, each with another bit of it
flipped, at places spread evenly over the file. Each must end with status 1 after one line on standard
error."""
import subprocess
import sys

plan, count, command = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
with open(plan, "rb") as file:
    content = file.read()
for i in range(count):
    place = i * (len(content) - 1) // (count - 1)
    flipped = bytearray(content)
    flipped[place] ^= 1 << (i % 8)
    with open(plan + ".flipped", "wb") as file:
        file.write(flipped)
    done = subprocess.run(
        [*command, plan + ".flipped"], capture_output=True, text=True, timeout=60
    )
    if done.returncode != 1 or done.stderr.count("\n") != 1 or done.stdout:
        sys.exit(f"byte {place} of {len(content)}: status {done.returncode}: {done.stderr}")
print(f"{count} flipped bits refused")
