"""Runs in processes of their own, which can be killed and interrupted."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec

from tests.train.runs.making import checkpoints

_BEGIN = """
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

SLOWLY = """
import time
from shoal.train._runs.run import Run
step = Run._step
def slow(run):
    time.sleep(0.01)
    step(run)
Run._step = slow
"""
"""Code to run before: every step of a run takes a while."""


STARTED = []
"""The processes that the running test has started; they are killed when it ends."""


def python(code, *arguments, **more):
    """A process that runs this code."""
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
    """A process that trains; the folder of its run is ``base / "run"``.

    Args:
        config: What is trained.
        base: Where the run is.
        num_envs: How many environments.
        seed: Of the run.
        before: Code that is run before it begins.
    """
    file = Path(base) / "config.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgspec.json.encode(config))
    return python(_BEGIN + before + _TRAIN, file, base, num_envs, seed)


def resuming(folder):
    """A process that goes on with a run."""
    return python(_BEGIN + _RESUME, folder)


def wait_for(what, process, seconds=60.0):
    """Wait until something is so, or the process has ended; whether it is so."""
    end = time.monotonic() + seconds
    while not what():
        if process.poll() is not None:
            return bool(what())
        assert time.monotonic() < end, f"it did not come to be within {seconds} seconds"
        time.sleep(0.002)
    return True


def newest(folder):
    """The name of the newest checkpoint; "" if there is none."""
    return max((path.name for path in checkpoints(folder)), default="")


def killed(process):
    """Kill it at once; what it has told before."""
    process.kill()
    told, _ = process.communicate(timeout=30)
    assert process.returncode in (-9, 0), told
    return told
