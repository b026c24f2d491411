"""Failures of workers and environments are reported to the caller, in time and unchanged."""

import os
import signal
import statistics
import threading
import time
from functools import partial

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError

from shoal.errors import (
    FactoryPicklingError,
    StepTimeoutError,
    VectorFailedError,
    WorkerCrashedError,
)
from shoal.pools import ProcessPool
from tests.faulty import FaultyEnv, fault

NOTHING = fault("nothing")


def actions(slot, name, count=4):
    """Return the action of this name for one slot, and "nothing" for the others."""
    batch = [NOTHING] * count
    batch[slot] = fault(name)
    return batch


def started(count=4, workers=2, **options):
    options = {"caller_works": False, "workers": workers, **options}
    pool = ProcessPool([partial(FaultyEnv, label) for label in range(count)], **options)
    pool.reset(seeds=range(count))
    pool.recv()
    return pool


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


class TestCrashes:
    KILLS = 7  # medians, since a busy machine may delay single measurements

    @pytest.mark.parametrize("doorbell", ["futex", "pipe"])
    @pytest.mark.parametrize(
        ("how", "exit_text"),
        [("exit", "exit code 7"), ("kill", "SIGKILL"), ("segfault", "SIGSEGV")],
    )
    def test_are_noticed_within_50_ms_in_mid_step(self, how, exit_text, doorbell):
        delays = []
        # A fork would inherit pytest's fault handler, which prints every segmentation fault.
        start_method = "fresh" if how == "segfault" else "fork"
        for _ in range(self.KILLS):
            pool = started(doorbell=doorbell, start=start_method)
            start = time.monotonic()
            with pytest.raises(WorkerCrashedError, match=exit_text) as info:
                pool.step(actions(1, how))
            delays.append(time.monotonic() - start)
            assert "slots 0 to 1" in str(info.value)
            pool.close(terminate=True)
        assert statistics.median(delays) < 0.05
        assert max(delays) < 1.0

    @pytest.mark.parametrize("worker", [0, 1], ids=["blocked", "idle"])
    @pytest.mark.parametrize("in_round", [True, False], ids=["round", "slots"])
    def test_are_noticed_within_50_ms_while_the_caller_waits(self, worker, in_round):
        delays = []
        for _ in range(self.KILLS):
            pool = started(start="fork")
            pid = pool.worker_states()[worker].process
            if in_round:
                pool.begin_step(actions(0, "sleep"))
            else:
                pool.send(actions(0, "sleep"))
            killed_at = []

            def kill(pid=pid, times=killed_at):
                times.append(time.monotonic())
                os.kill(pid, signal.SIGKILL)

            killer = threading.Timer(0.1, kill)  # worker 1 is idle by then
            killer.start()
            with pytest.raises(WorkerCrashedError, match="SIGKILL"):
                pool.recv()
            delays.append(time.monotonic() - killed_at[0])
            killer.join()
            pool.close(terminate=True)
        assert statistics.median(delays) < 0.05
        assert max(delays) < 1.0

    @pytest.mark.parametrize(
        ("how", "exit_text"),
        [("exit", "exit code 7"), ("kill", "SIGKILL"), ("segfault", "SIGSEGV")],
    )
    def test_make_every_later_call_raise(self, how, exit_text):
        pool = started()
        start = time.monotonic()
        with pytest.raises(WorkerCrashedError, match=exit_text) as info:
            pool.step(actions(1, how))
        assert time.monotonic() - start < 1.0
        assert "slots 0 to 1" in str(info.value)
        with pytest.raises(WorkerCrashedError, match=exit_text):
            pool.step(actions(1, "nothing"))
        with pytest.raises(WorkerCrashedError, match=exit_text):
            pool.call("label")
        pool.close()
        with pytest.raises(ClosedEnvironmentError):
            pool.step(actions(1, "nothing"))

    @pytest.mark.parametrize("use", ["step", "send", "call", "reset"])
    def test_are_noticed_after_idling(self, use):
        pool = started()
        os.kill(pool.call("pid")[0], signal.SIGKILL)
        time.sleep(0.1)
        start = time.monotonic()
        uses = {
            "step": lambda: pool.step([NOTHING] * 4),
            "send": lambda: (pool.send([NOTHING] * 4), pool.recv()),
            "call": lambda: pool.call("label"),
            "reset": lambda: (pool.reset(), pool.recv()),
        }
        with pytest.raises(WorkerCrashedError, match="SIGKILL"):
            uses[use]()
        assert time.monotonic() - start < 0.2
        pool.close()

    def test_while_a_worker_builds_its_environments(self):
        with pytest.raises(WorkerCrashedError, match="exit code 9"):
            ProcessPool([partial(os._exit, 9)] * 2, workers=1, caller_works=False)

    def test_a_pool_with_a_stopped_worker_can_be_closed(self):
        pool = started()
        pool.send(actions(3, "stop"))
        with pytest.raises(TimeoutError):
            pool.recv(timeout=0.1)
        assert {0, 1} <= set(pool.recv(min_slots=2).slots.tolist())
        pids = set(pool.call("pid", slots=[0, 1]))
        start = time.monotonic()
        pool.close(timeout=0.3)
        assert time.monotonic() - start < 2.0
        assert not any(map(is_running, pids))


class TestStepTimeouts:
    def test_raise_step_timeout_error(self):
        pool = started(step_timeout=0.3)
        start = time.monotonic()
        with pytest.raises(StepTimeoutError, match="slot 2 has taken longer"):
            pool.step(actions(2, "sleep"))
        assert 0.25 < time.monotonic() - start < 1.5
        pool.close()

    @pytest.mark.parametrize("how", ["sleep", "stop"])
    def test_restart_the_worker(self, how):
        pool = started(step_timeout=1.0, on_crash="restart", stand_ins=False)
        truncated = pool.step(actions(2, how))[3]
        assert truncated.tolist() == [False, False, True, True]
        pool.send([NOTHING] * 4)
        assert not pool.recv().truncated.any()
        pool.send(actions(0, how))
        assert pool.recv().truncated.tolist() == [True, True, False, False]
        pool.close()

    def test_a_hanging_slot_is_detected_while_others_of_its_worker_are_stepped(self):
        pool = started(step_timeout=0.5, on_crash="restart", workers=1)
        pool.send(actions(1, "sleep"))
        start = time.monotonic()
        while not (batch := pool.recv(min_slots=1)).truncated.any():
            pool.send([NOTHING] * len(batch.slots), slots=batch.slots)
            assert time.monotonic() - start < 5.0
        pool.close()

    def test_a_stopped_worker_is_restarted(self):
        pool = started(step_timeout=0.3, on_crash="restart")
        os.kill(pool.call("pid")[0], signal.SIGSTOP)
        assert pool.step([NOTHING] * 4)[3].tolist() == [True, True, False, False]
        pool.close()

    def test_are_not_tripped_by_a_slow_caller(self):
        pool = started(step_timeout=0.2, on_crash="restart")
        pool.step([NOTHING] * 4)
        time.sleep(0.5)
        pool.send([NOTHING] * 4)
        time.sleep(0.5)
        assert not pool.recv().truncated.any()
        pool.close()

    def test_apply_to_each_slot_of_a_share_separately(self):
        pool = started(step_timeout=0.5, stand_ins=False)
        pool.step([fault("wait")] * 4)
        pool.close()


def test_an_interrupted_message_makes_the_pool_unusable_and_close_ends_its_workers():
    pool = started()
    pids = pool.call("pid")
    os.kill(pids[0], signal.SIGSTOP)

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGUSR1, interrupt)
    threading.Timer(0.3, os.kill, [os.getpid(), signal.SIGUSR1]).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            pool.call("set_wrapper_attr", "label", np.zeros(500_000))
    finally:
        signal.signal(signal.SIGUSR1, before)
    with pytest.raises(VectorFailedError, match="was cut off"):
        pool.step([NOTHING] * 4)
    start = time.monotonic()
    pool.close(timeout=0.3)
    assert time.monotonic() - start < 3.0
    assert not any(map(is_running, pids))


class Unreadable:
    def __reduce__(self):
        return int, ("no number",)


class UnreadableEnv(FaultyEnv):
    def step(self, action):
        return *super().step(action)[:4], {"odd": Unreadable()}


def test_a_message_that_cannot_be_unpickled_raises_and_close_ends_the_workers():
    pool = ProcessPool([UnreadableEnv] * 2, workers=1, caller_works=False)
    pool.reset()
    pool.recv()
    pids = pool.call("pid")
    for use in (partial(pool.step, [NOTHING] * 2), pool.recv, pool.reset):
        with pytest.raises(ValueError, match="no number"):
            use()
    pool.close()
    assert not any(map(is_running, pids))


class TestFactories:
    def test_that_cannot_be_pickled_are_reported_with_the_reason(self):
        lock = threading.Lock()

        def factory():
            return FaultyEnv(lock)

        with pytest.raises(FactoryPicklingError, match=r"slot 1 .*the variable 'lock'"):
            ProcessPool([FaultyEnv, factory], workers=1, caller_works=False)

    def test_that_cannot_be_pickled_can_be_forked(self):
        lock = threading.Lock()
        factories = [lambda: FaultyEnv(lock.locked())] * 2
        pool = ProcessPool(factories, workers=1, caller_works=False, start="fork")
        assert pool.call("label") == [False, False]
        pool.close()

    def test_that_a_worker_cannot_import(self, monkeypatch):
        import sys
        import types

        module = types.ModuleType("only_here")
        exec("import tests.faulty\nclass Env(tests.faulty.FaultyEnv): pass", vars(module))
        monkeypatch.setitem(sys.modules, "only_here", module)
        with pytest.raises(FactoryPicklingError, match="only_here"):
            ProcessPool([module.Env] * 2, workers=1, caller_works=False)
