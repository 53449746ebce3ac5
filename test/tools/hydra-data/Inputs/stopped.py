"""Runs a command until it has made a temporary folder, and then terminates it: stopped.py COMMAND...
Prints its status as a shell counts, and what it said."""
import pathlib
import subprocess
import sys
import time

process = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
while process.poll() is None and not list(pathlib.Path().glob("*.tmp")):
    time.sleep(0.005)
process.terminate()
said = process.communicate()[1]
status = process.returncode
print(status if status >= 0 else 128 - status, said, end="")
