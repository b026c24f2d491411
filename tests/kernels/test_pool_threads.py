"""The pool of kernels with threads: forks, interrupts, timeouts, concurrent calls and exit."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from gymnasium.error import AlreadyPendingCallError

import shoal
from shoal._envs import builtin_kernel
from shoal.testing import assert_identical
from tests.kernels.alarm import Alarm, alarm_after


def test_concurrent_calls_raise():
    with shoal.make("Acrobot-v1", 20_000) as envs:
        envs.reset(seed=0)
        refused = []
        stop = threading.Event()

        def call_concurrently():
            while not stop.is_set():
                try:
                    envs.pool.latest([0])
                except RuntimeError as error:
                    refused.append(error)

        thread = threading.Thread(target=call_concurrently)
        thread.start()
        for _ in range(100):
            try:
                envs.step(np.ones(20_000, np.int64))
            except RuntimeError as error:
                refused.append(error)
            if refused:
                break
        stop.set()
        thread.join()
        assert refused
        assert "already being stepped" in str(refused[0])
        envs.step(np.ones(20_000, np.int64))


def thread_count():
    """Return the number of native threads; Python threads of other tests may still be ending."""
    return len(os.listdir("/proc/self/task")) - threading.active_count()


def test_threads_start_on_demand_and_end_with_the_vector():
    before = thread_count()
    for _ in range(5):
        envs = shoal.make("CartPole-v1", 4000, workers=3)
        envs.reset(seed=0)
        for _ in range(3):
            envs.step(np.ones(4000, np.int64))
        assert thread_count() == before + 3
        envs.close()
        assert thread_count() == before
    with shoal.make("CartPole-v1", 4, workers=3) as small:
        for _ in range(20):
            small.reset(seed=0)
        small.step([1, 1, 1, 1])
        assert thread_count() == before
    envs = shoal.make("CartPole-v1", 4000, workers=3)
    envs.reset(seed=0)
    envs.send(np.ones(4000, np.int64))
    del envs
    assert thread_count() == before


def test_threads_are_bound_to_cores():
    for arguments in ({"pin": True}, {"thread_affinity_offset": 0}):
        before = set(os.listdir("/proc/self/task"))
        with shoal.make("CartPole-v1", 4000, backend="kernel", workers=2, **arguments) as envs:
            envs.reset(seed=0)
            envs.step(np.ones(4000, np.int64))
            workers = set(os.listdir("/proc/self/task")) - before
            assert len(workers) == 2
            for worker in workers:
                assert len(os.sched_getaffinity(int(worker))) == 1


def test_vector_works_after_a_fork():
    with shoal.make("CartPole-v1", 5000, workers=2) as envs:
        envs.reset(seed=0)
        actions = np.ones(5000, np.int64)
        for _ in range(3):
            envs.step(actions)
        envs.send(actions)  # fork with slots in flight
        child = os.fork()
        if child == 0:
            status = 1
            try:
                signal.alarm(60)
                total = envs.recv().observations.sum()
                for _ in range(5):
                    total += envs.step(actions)[0].sum()
                envs.close()
                status = 0 if np.isfinite(total) else 2
            finally:
                os._exit(status)
        mine = envs.recv().observations.sum()
        for _ in range(5):
            mine += envs.step(actions)[0].sum()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_forks_while_threads_are_running():
    with shoal.make("CartPole-v1", 5000, workers=2) as envs:
        envs.reset(seed=0)
        actions = np.ones(5000, np.int64)
        children = []
        for _ in range(20):
            envs.send(actions)
            child = os.fork()
            if child == 0:
                signal.alarm(60)
                envs.recv()
                os._exit(0)
            children.append(child)
            envs.recv()
        for child in children:
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_interpreter_can_exit_while_threads_are_running():
    script = """
import numpy as np, shoal
envs = shoal.make("Acrobot-v1", 20000, workers=3)
envs.reset(seed=0)
envs.send(np.ones(20000, np.int64))
print("sent")
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    )
    assert ended.stdout == "sent\n"
    assert ended.stderr == ""


def step_often(envs, actions):
    for _ in range(10_000):
        envs.step(actions)


def test_keyboard_interrupt_leaves_the_vector_usable():
    with shoal.make("Acrobot-v1", 20_000) as envs:
        envs.reset(seed=0)
        actions = np.ones(20_000, np.int64)
        timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        handler = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            with pytest.raises(KeyboardInterrupt):
                step_often(envs, actions)
        finally:
            signal.signal(signal.SIGINT, handler)
            timer.join()
        envs.step(actions)


def test_opening_and_closing_leaks_no_resources():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cycle():
        with shoal.make("CartPole-v1", 2000, workers=2) as envs:
            envs.reset(seed=0)
            envs.step(np.ones(2000, np.int64))

    for _ in range(30):
        cycle()
    threads, files, memory = thread_count(), len(os.listdir("/proc/self/fd")), resident()
    for _ in range(150):
        cycle()
    assert thread_count() == threads
    assert len(os.listdir("/proc/self/fd")) == files
    assert resident() - memory < 20e6


def test_recv_timeout():
    with shoal.make("Acrobot-v1", 20_000, workers=1) as envs:
        envs.reset(seed=0)
        envs.send(np.ones(20_000, np.int64))
        start = time.monotonic()
        try:
            envs.recv(timeout=0.0)
        except TimeoutError as error:
            assert "0.0 seconds" in str(error)  # noqa: PT017 - a fast machine may be done
        assert time.monotonic() - start < 5
        assert envs.pool.in_flight in (0, 20_000)
        if envs.pool.in_flight:
            assert len(envs.recv().slots) == 20_000


def test_interrupted_step_finishes_before_the_next():
    # A signal handler raises while threads are running; the next step must not change the actions.
    with shoal.make("Acrobot-v1", 200_000) as envs, shoal.make("Acrobot-v1", 200_000) as calm:
        envs.reset(seed=0)
        calm.reset(seed=0)
        ones, twos = np.zeros(200_000, np.int64), np.full(200_000, 2)
        with alarm_after(0.02), pytest.raises(Alarm):
            envs.step(ones)
        calm.step(ones)
        assert_identical(envs.step(twos), calm.step(twos))


def test_two_threads_cannot_send_the_same_slot():
    with shoal.make("CartPole-v1", 4) as envs:
        envs.reset(seed=0)
        sent, refused = [], []
        barrier = threading.Barrier(2)

        def send():
            barrier.wait()
            try:
                envs.send([1], slots=[2])
                sent.append(1)
            except (AlreadyPendingCallError, RuntimeError):
                refused.append(1)

        for _ in range(200):
            threads = [threading.Thread(target=send) for _ in range(2)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            envs.recv()
        assert len(sent) == len(refused) == 200


def test_polling_with_zero_timeout_finishes():
    for count in (3, 3000):
        with shoal.make("CartPole-v1", count, backend="kernel", workers=0) as envs:
            envs.reset(seed=0)
            envs.send(np.ones(count, np.int64))
            for _ in range(10_000):
                try:
                    assert len(envs.recv(timeout=0).slots) == count
                    break
                except TimeoutError:
                    continue
            assert envs.pool.in_flight == 0
            envs.send(np.ones(count, np.int64))
            assert len(envs.recv(timeout=float("inf")).slots) == count


def test_interpreter_can_exit_while_a_python_thread_steps():
    script = """
import threading, time
import numpy as np, shoal
envs = shoal.make("Acrobot-v1", 3000)
envs.reset(seed=0)
def step():
    while True:
        try:
            envs.step(np.ones(3000, np.int64))
        except shoal.errors.StoppedVectorError:
            return
import shoal.errors
threading.Thread(target=step, daemon=True).start()
time.sleep(0.3)
"""
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_pinning_to_missing_cores_raises():
    with pytest.raises(ValueError, match=r"thread_affinity_offset is 1000000, but there are \d+"):
        shoal.make("CartPole-v1", 2, thread_affinity_offset=1_000_000)
    with pytest.raises(TypeError, match="expected one kernel"):
        shoal.make([builtin_kernel("CartPole-v1", {})] * 2)


def test_rendering_can_be_interrupted():
    with shoal.make("CartPole-v1", 150, render_mode="rgb_array", workers=2) as envs:
        envs.reset(seed=0)
        whole = envs.render()[149]
        with alarm_after(0.005), pytest.raises(Alarm):
            envs.render_tiled()
        assert_identical(envs.render()[149], whole)
