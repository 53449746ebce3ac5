# The lit suite: files with RUN lines, checked with FileCheck. Configured by lit.site.cfg.py.
import ctypes
import importlib.util
import os
import shutil
import subprocess

import lit.formats

config.name = "hydra"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["unit", "fuzz", "support", "Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.hydra_build_test_dir

# What hangs fails, where lit can end what a test has started.
if importlib.util.find_spec("psutil"):
    lit_config.maxIndividualTestTime = 900

config.environment["PATH"] = os.pathsep.join(
    [config.hydra_tools_dir, config.llvm_tools_dir, config.environment["PATH"]]
)

config.substitutions.append(("%models", os.path.join(config.hydra_source_dir, "models")))
config.substitutions.append(("%root", config.hydra_source_dir))
config.substitutions.append(("%tools", config.hydra_tools_dir))
if config.python:
    config.available_features.add("python")
    config.substitutions.append(("%python", config.python))

# What starts ranks: tested where it is installed.
for launcher, programs in {
    "mpirun": ["mpirun"],
    "torchrun": ["torchrun"],
    "srun": ["srun", "slurmctld", "slurmd", "munged"],
}.items():
    if all(shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin") for program in programs):
        config.available_features.add(launcher)

# A host name of their own for some ranks, where anyone may give himself one.
if shutil.which("unshare") and subprocess.run(
        ["unshare", "--user", "--map-root-user", "--uts", "hostname", "node1"], stderr=subprocess.DEVNULL).returncode == 0:
    config.available_features.add("unshare")

# Pages are tried in a browser where there is one.
if shutil.which("chromium"):
    config.available_features.add("chromium")


def loads(*names):
    """Whether one of these shared libraries can be loaded."""
    for name in names:
        try:
            ctypes.CDLL(name)
            return True
        except OSError:
            pass
    return False


# Kernels for GPUs are compiled by NVRTC, and run where there is a driver.
if loads("libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"):
    config.available_features.add("nvrtc")
config.available_features.add("gpu" if loads("libcuda.so.1") else "no-gpu")
# Kernels of one test must not come from another run's.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
