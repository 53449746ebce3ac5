"""Runs two ranks of hydra-run under a launcher. Usage: ranks-launchers.py LAUNCHER PLAN DATA FOLDER

LAUNCHER: mpirun, torchrun or srun, for which a cluster of this machine alone is started in FOLDER. Compares
the checkpoint with that of --ranks=2; then kills a rank, kills the launcher, and stops it by signals.
"""
import contextlib
import filecmp
import getpass
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

launcher, plan, data, folder = sys.argv[1:]
SECONDS_TO_GO = 5
# A launcher may take that much longer than its ranks.
LAUNCHER_WAITS = 6
WORDS = {
    # Where one rank died, mpirun leaves the others a second before it kills them: on a busy machine too little for their line.
    "mpirun": ["mpirun", "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "3", "-n", "2"],
    # Some versions know the flags with underscores only, some fail where output is not redirected, and some
    # look for processes that have ended every five seconds.
    "torchrun": ["torchrun", "--nproc_per_node=2", "--no_python", "-r", "1", "-t", "1", "--monitor_interval=0.2"],
    "srun": ["srun", "--overcommit", "-n", "2"],
}[launcher]
RANK = {"mpirun": "OMPI_COMM_WORLD_RANK", "torchrun": "RANK", "srun": "SLURM_PROCID"}[launcher]
os.environ.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                  PATH=os.environ["PATH"] + ":/usr/sbin")  # where Debian has the daemons


def free_ports(count):
    with contextlib.ExitStack() as stack:
        found = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in found:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in found]


@contextlib.contextmanager
def slurm():
    """A cluster of this machine, with all that it writes in one folder. It needs no right of root."""
    place = os.path.join(folder, "slurm")
    shutil.rmtree(place, ignore_errors=True)
    for name in ("state", "spool", "munge"):
        os.makedirs(os.path.join(place, name))
    # munged wants a short path, which nobody else may write to.
    os.chmod(os.path.join(place, "munge"), 0o700)
    key = os.path.join(place, "munge.key")
    with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as file:
        file.write(os.urandom(128))
    run = f"/tmp/hydra-munge-{os.getpid()}"
    host, user, ports = socket.gethostname().split(".")[0], getpass.getuser(), free_ports(2)
    with open(os.path.join(place, "slurm.conf"), "w") as file:
        file.write(f"""ClusterName=hydra
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={run}
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
KillWait=1
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP OverSubscribe=FORCE
""")
    os.environ["SLURM_CONF"] = os.path.join(place, "slurm.conf")
    daemons = []

    def daemon(*words):
        with open(os.path.join(place, os.path.basename(words[0]) + ".log"), "w") as log:
            daemons.append(subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True))

    try:
        daemon("munged", "--foreground", "--force", f"--key-file={key}", f"--socket={run}",
               *(f"--{name}-file={place}/munge/{name}" for name in ("pid", "seed", "log")))
        while not os.path.exists(run):
            assert daemons[0].poll() is None, "munged does not run"
            time.sleep(0.05)
        daemon("slurmctld", "-D", "-i")
        daemon("slurmd", "-D", "-N", host)
        deadline = time.time() + 60
        while subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True
                             ).stdout.strip() not in ("idle", "mixed"):
            assert time.time() < deadline, "the node is not ready"
            time.sleep(0.2)
        yield
    finally:
        for one in reversed(daemons):
            one.terminate()
        for one in daemons:
            with contextlib.suppress(subprocess.TimeoutExpired):
                one.wait(10)
            one.kill()
            one.wait()


def command(save, steps, *more):
    return [shutil.which("hydra-run"), plan, "--data", data, "--eval-batches", "1", "--steps", str(steps),
            "--save", save, "--threads", "1", *more]


def newest(save):
    names = [n for n in os.listdir(save) if n.startswith("step-")] if os.path.isdir(save) else []
    return int(max(names)[5:]) if names else 0


def environment(pid):
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            return dict(line.split("=", 1) for line in file.read().decode().split("\0") if "=" in line)
    except OSError:
        return {}


def arguments(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().decode().split("\0")
    except OSError:
        return []


def ranks_of(save):
    """The processes of the run that saves there, by rank."""
    return {int(environment(pid).get(RANK, -1)): pid for pid in map(int, filter(str.isdigit, os.listdir("/proc")))
            if arguments(pid)[:1] == command(save, 0)[:1] and save in arguments(pid)}


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def same(one, other):
    result = filecmp.dircmp(one, other)
    _, different, odd = filecmp.cmpfiles(one, other, result.common_files, shallow=False)
    return not (result.left_only or result.right_only or different or odd) and all(
        same(os.path.join(one, name), os.path.join(other, name)) for name in result.common_dirs)


def check_bits():
    one, other = os.path.join(folder, "ranks"), os.path.join(folder, launcher)
    subprocess.run([*command(one, 6), "--ranks=2"], check=True, stdout=subprocess.DEVNULL)
    subprocess.run([*WORDS, *command(other, 6)], check=True, stdout=subprocess.DEVNULL, timeout=120)
    assert same(one, other)
    print(f"{launcher}: the bytes of --ranks=2")


def check_end(name, send, expected):
    """`send(launcher, ranks)` ends a run; what hydra-run says of it has this one line, or none."""
    save = os.path.join(folder, name.replace(" ", "-"))
    shutil.rmtree(save, ignore_errors=True)
    with open(os.path.join(folder, "output"), "w+") as output:
        process = subprocess.Popen([*WORDS, *command(save, 10**9, "--save-every", "20", "--keep", "2")],
                                   stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        deadline = time.time() + 120
        while newest(save) < 20:
            assert time.time() < deadline and process.poll() is None, open(output.name).read()
            time.sleep(0.01)
        ranks = ranks_of(save)
        assert sorted(ranks) == [0, 1], ranks
        send(process.pid, ranks)
        begin = time.time()
        while process.poll() is None or any(map(alive, ranks.values())):
            seconds = time.time() - begin
            assert seconds < SECONDS_TO_GO or not any(map(alive, ranks.values())), (name, ranks, open(output.name).read())
            assert seconds < SECONDS_TO_GO + LAUNCHER_WAITS, (name, process.poll(), open(output.name).read())
            time.sleep(0.02)
        output.seek(0)
        lines = [line for line in output.read().splitlines()
                 if re.search("(^|:)hydra-run: ", line) and "initial parameters" not in line]
    if expected is None:
        assert len(lines) <= 1, lines
    else:
        assert len(lines) == 1 and re.search(expected, lines[0]), (lines, process.returncode, open(output.name).read())
    # What is there can be resumed.
    subprocess.run([*command(save, newest(save) + 1, "--resume", "auto"), "--ranks=2"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    print(f"{launcher}: {name}")


with slurm() if launcher == "srun" else contextlib.nullcontext():
    check_bits()
    for victim in (0, 1):
        check_end(f"rank {victim} killed", lambda _, ranks: os.kill(ranks[victim], signal.SIGKILL),
                  rf"rank {victim} \(host .*\) died after step \d+: its connection broke off; resume from .*/step-\d+$")
    # Ranks that lose their launcher save, if it leaves them the time, and stop.
    check_end("launcher killed", lambda pid, _: os.kill(pid, signal.SIGKILL), None)
    check_end("SIGTERM to the launcher", lambda pid, _: os.kill(pid, signal.SIGTERM), None)
