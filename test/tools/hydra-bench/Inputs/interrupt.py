# Interrupts a sweep once it has two rows: interrupt.py COMMAND...; the file of results follows -o.
import json
import os
import signal
import subprocess
import sys

command = sys.argv[1:]
process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
last = ""
for line in process.stderr:
    last = line.strip() or last
    if line.startswith("[2/"):
        os.kill(process.pid, signal.SIGINT)
status = process.wait()
rows = len(json.load(open(command[command.index("-o") + 1]))["rows"])
print(f"status {status}, {rows} rows in the file, {last}")
