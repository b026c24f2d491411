"""Runs in child processes, which can be killed and interrupted."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec

from tests.train.runs.small_runs import checkpoints

_SETUP = """
import sys, warnings
warnings.simplefilter("ignore")
from shoal.train._reporting import reporter
reporter.write_plots = reporter.open_board = lambda *_: None
from shoal.train import resume_run, train_single_run
"""

_TRAIN = """
train_single_run(sys.argv[1], sys.argv[2], "run", verbose=False, device="cpu",
                 num_envs=int(sys.argv[3]), seed=int(sys.argv[4]))
"""

_RESUME = """
resume_run(sys.argv[1], verbose=False)
"""

SLOW_STEPS = """
import time
from shoal.train._runs.run import Run
step = Run._step
def slow(run):
    time.sleep(0.01)
    step(run)
Run._step = slow
"""
"""Setup code that makes every step of a run slow."""


STARTED = []
"""The processes that the running test has started; they are killed when it ends."""


def python(code, *arguments, **more):
    """Start a process that runs this code."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        **more,
    )
    STARTED.append(process)
    return process


def training(config, base, *, num_envs, seed=3, before=""):
    """Start a process that trains a run in the folder ``base / "run"``.

    Args:
        config: The config of the run.
        base: The folder in which the run's folder is created.
        num_envs: Number of environments.
        seed: The seed of the run.
        before: Code to execute before the run starts.
    """
    file = Path(base) / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(config))
    return python(_SETUP + before + _TRAIN, file, base, num_envs, seed)


def resuming(folder):
    """Start a process that resumes a run."""
    return python(_SETUP + _RESUME, folder)


def wait_for(condition, process, seconds=60.0):
    """Wait until a condition holds or the process has ended; return whether it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if process.poll() is not None:
            return bool(condition())
        assert time.monotonic() < deadline, f"condition not met within {seconds} seconds"
        time.sleep(0.002)
    return True


def newest(folder):
    """Return the name of the newest checkpoint; "" if there is none."""
    return max((path.name for path in checkpoints(folder)), default="")


def kill(process):
    """Kill a process and return its output."""
    process.kill()
    output, _ = process.communicate(timeout=30)
    assert process.returncode in (-9, 0), output
    return output
