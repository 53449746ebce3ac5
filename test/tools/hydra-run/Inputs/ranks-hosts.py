"""Runs four ranks on two hosts that this machine pretends to be. Usage: ranks-hosts.py PLAN DATA FOLDER [FACTORED]

Each pair of ranks has a host name of its own, in a namespace for that. Compares the checkpoint with that of --ranks=4;
then kills a rank, and looks at who says so. FACTORED: a plan that knows of the hosts, instead of that.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import time

plan, data, folder, *factored = sys.argv[1:]
RANKS, PER_HOST = 4, 2
SECONDS_TO_GO = 5


def command(save, steps, *more, plan=plan):
    return [shutil.which("hydra-run"), plan, "--data", data, "--eval-batches", "1", "--steps", str(steps),
            "--save", os.path.join(folder, save), "--threads", "1", *more]


def host(rank):
    return f"node{rank // PER_HOST}"


class Run:
    """The ranks of one run, each with what it prints."""

    def __init__(self, words, host=host):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.outputs = [open(os.path.join(folder, f"output.{rank}"), "w+") for rank in range(RANKS)]
        self.processes = [
            subprocess.Popen(
                ["unshare", "--user", "--map-root-user", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', host(rank), *words],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(RANKS), "MASTER_ADDR": "127.0.0.1",
                     "MASTER_PORT": str(port)})
            for rank, output in enumerate(self.outputs)]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in self.processes:
            process.kill()
            process.wait()

    def said(self, rank):
        with open(self.outputs[rank].name) as file:
            return file.read()

    def lines(self, rank):
        return [line for line in self.said(rank).splitlines()
                if line.startswith("hydra-run: ") and "initial parameters" not in line]

    def wait(self, seconds):
        deadline = time.time() + seconds
        for process in self.processes:
            process.wait(max(0.01, deadline - time.time()))


def files(save):
    root = os.path.join(folder, save)
    return {os.path.relpath(os.path.join(place, name), root): open(os.path.join(place, name), "rb").read()
            for place, _, names in os.walk(root) for name in names}


def check_bits():
    subprocess.run([*command("one-host", 6), f"--ranks={RANKS}"], check=True, stdout=subprocess.DEVNULL)
    with Run(command("two-hosts", 6)) as run:
        run.wait(120)
        assert all(process.returncode == 0 for process in run.processes), [run.said(rank) for rank in range(RANKS)]
    assert files("one-host") == files("two-hosts")
    print("the bytes of one host")


def check_factored(plan):
    """Ranks of a host in a row, as the plan has them: the bytes of the mesh by hand. One rank here, one there: refused."""
    for words in (command("by-hand", 6), command("factored", 6, plan=plan)):
        with Run(words) as run:
            run.wait(120)
            assert all(process.returncode == 0 for process in run.processes), [run.said(rank) for rank in range(RANKS)]
    assert files("by-hand") == files("factored")
    print("the bytes of a mesh by hand")
    with Run(command("spread", 6, plan=plan), host=lambda rank: f"node{rank % 2}") as run:
        run.wait(120)
        assert all(process.returncode == 1 for process in run.processes), [run.said(rank) for rank in range(RANKS)]
        lines = [line for rank in range(RANKS) for line in run.lines(rank)]
    assert len(lines) == 1 and not os.path.exists(os.path.join(folder, "spread")), lines
    print(lines[0].replace(plan, "PLAN"))


def check_death(victim, speakers):
    save = os.path.join(folder, f"killed-{victim}")
    with Run(command(save, 10**9, "--save-every", "20", "--keep", "2")) as run:
        deadline = time.time() + 120
        while not (os.path.isdir(save) and any(name.startswith("step-") for name in os.listdir(save))):
            assert time.time() < deadline and all(process.poll() is None for process in run.processes), \
                [run.said(rank) for rank in range(RANKS)]
            time.sleep(0.01)
        run.processes[victim].kill()
        run.wait(SECONDS_TO_GO)
        for rank in range(RANKS):
            lines = run.lines(rank)
            assert len(lines) == (1 if rank in speakers else 0), (rank, run.said(rank))
            assert all(re.search(rf"rank {victim} \(host {host(victim)}, pid \d+\)", line) for line in lines), lines
    print(f"rank {victim} of {host(victim)} killed: said by rank {' and rank '.join(map(str, speakers))}")


if factored:
    check_factored(factored[0])
else:
    check_bits()
    check_death(3, [0])
    # Rank 1, and on the host without it the first rank: each host's launcher shows the lines of its own ranks.
    check_death(0, [1, 2])
