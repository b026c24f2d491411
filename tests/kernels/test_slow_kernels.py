"""Slow kernels: waits can be interrupted, and other threads are not blocked."""

import os
import subprocess
import sys
import time

import numpy as np
import pytest

import shoal
from tests.kernels.alarm import Alarm, alarm_after
from tests.kernels.c_sources import compiled, source

SLOW = """
#include <time.h>
static void wait(double seconds) {
  struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  nanosleep(&t, 0);
}
"""


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """A kernel that sleeps if an action requests it."""
    text = source("if (actions[2 * k + 1] == 3) wait(1.5);", head=SLOW)
    text = "#define _POSIX_C_SOURCE 200809L\n" + text
    return shoal.kernels.load(compiled(tmp_path_factory.mktemp("slow"), text))


COUNT = 3000  # enough slots for work to be shared with the thread


def send_slow_actions(envs):
    """Send actions such that a thread begins a chunk whose first slot is slow."""
    envs.reset(seed=0)
    actions = np.zeros((COUNT, 2), np.int64)
    for _ in range(5):
        envs.step(actions)
    actions[0] = (1, 3)
    envs.send(actions)
    time.sleep(0.2)


def test_receiving_from_a_slow_kernel_can_time_out_and_be_interrupted(slow):
    with shoal.make(slow, COUNT, workers=1) as envs:
        send_slow_actions(envs)
        start = time.monotonic()
        with pytest.raises(TimeoutError):
            envs.recv(timeout=0.05)
        with alarm_after(0.1), pytest.raises(Alarm):
            envs.recv()
        assert time.monotonic() - start < 1.2
        assert envs.pool.in_flight == COUNT
        assert envs.recv().slots.tolist() == list(range(COUNT))


def test_closing_with_a_thread_inside_a_kernel_is_safe(slow):
    script = f"""
import sys, time, warnings, gc
import numpy as np, shoal
envs = shoal.make(shoal.kernels.load({str(slow.recipe.args[0])!r}), 3000, workers=1)
envs.reset(seed=0)
actions = np.zeros((3000, 2), np.int64)
for _ in range(5):
    envs.step(actions)
actions[0] = 0, 3
envs.send(actions)
time.sleep(0.2)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    envs.close(timeout=0.05)
assert "still executing the kernel" in str(caught[0].message), caught
del envs
gc.collect()
others = [np.ones(1000) for _ in range(1000)]
time.sleep(2.0)
print("alive")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "alive\n"), ended.stderr


def test_forked_child_reports_lost_slots(slow):
    with shoal.make(slow, COUNT, workers=1) as envs:
        send_slow_actions(envs)  # takes longer than a fork waits
        child = os.fork()
        if child == 0:
            status = 1
            try:
                envs.recv(timeout=20)
            except RuntimeError as error:
                status = 0 if "its slots are lost" in str(error) else 2
            finally:
                os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert envs.recv().slots.tolist() == list(range(COUNT))


def test_dropped_pool_does_not_block_other_threads(slow):
    # In a separate process: the pool must be released by its last reference, not closed.
    script = f"""
import gc, threading, time, warnings
import numpy as np, shoal
warnings.simplefilter("ignore")
envs = shoal.make(shoal.kernels.load({str(slow.recipe.args[0])!r}), 3000, workers=1)
envs.reset(seed=0)
actions = np.zeros((3000, 2), np.int64)
for _ in range(5):
    envs.step(actions)
actions[0] = 1, 3
envs.send(actions)
time.sleep(0.2)
times = [time.monotonic()]
stopping = threading.Event()
def count():
    while not stopping.is_set():
        times.append(time.monotonic())
        time.sleep(0.01)
thread = threading.Thread(target=count)
thread.start()
before = time.monotonic()
del envs
gc.collect()
waited = time.monotonic() - before
stopping.set()
thread.join()
print(waited, max(b - a for a, b in zip(times, times[1:])))
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    waited, longest_pause = map(float, ended.stdout.split())
    assert waited > 0.8, "the pool did not wait for its kernel"
    assert longest_pause < 0.6
