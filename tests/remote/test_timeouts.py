"""Timeouts: late responses are never mistaken for others."""

import signal
import threading
import time
from dataclasses import replace
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError

import shoal
from shoal.errors import ReceiveTimeoutError
from shoal.pools import InlinePool, ThreadPool
from tests.remote.peers import (
    LONG,
    SOON,
    process,
)
from tests.remote.serving import connected, place

LONG_TIMEOUT = 60.0
"""Seconds that are enough on a busy machine."""

alarm = threading.Event()
"""Wakes all sleeping environments of this process while it is set."""


@pytest.fixture(autouse=True)
def _wake_up():
    alarm.clear()
    yield
    alarm.set()


class Sleeper(gymnasium.Env):
    """Takes the milliseconds of a step as action; observes the number of steps."""

    observation_space = spaces.Box(-1, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(100_000)

    def __init__(self, label=0):
        self.label = label
        self.count = 0

    def reset(self, *, seed=None, options=None):
        return np.array([self.label, self.count], np.float64), {}

    def step(self, action):
        alarm.wait(action / 1000)
        self.count += 1
        observation = np.array([self.label, self.count], np.float64)
        return observation, float(self.count), False, False, {"took": int(action)}

    def slow(self, milliseconds):
        alarm.wait(milliseconds / 1000)
        return milliseconds


def sleepers(pool=InlinePool, count=2):
    factories = [partial(Sleeper, label) for label in range(count)]
    if pool is ThreadPool:  # one thread per slot
        return lambda: ThreadPool(factories, workers=count, caller_works=False)
    return lambda: pool(factories)


def set_timeout(envs, seconds):
    """Set a shorter timeout after connecting, which may take long on a busy machine."""
    pool = envs.pool
    pool._target = pool._dispatcher.link.target = replace(pool._target, timeout=seconds)


slow = partial(pytest.param, marks=pytest.mark.slow)

URLS = ["inproc", "tcp", "unix", "ws"]


@pytest.mark.parametrize(
    ("scheme", "on_lost"), [*((scheme, "raise") for scheme in URLS), slow("tcp", "resume")]
)
def test_late_step_is_received(scheme, on_lost, listen_at):
    envs = connected(sleepers(), url=listen_at(scheme), timeout=LONG_TIMEOUT, on_lost=on_lost)
    envs.reset(seed=0)
    set_timeout(envs, 0.15)
    start_time = time.monotonic()
    with pytest.raises(ReceiveTimeoutError, match="can still be received"):
        envs.step([LONG, LONG])
    assert 0.1 < time.monotonic() - start_time < SOON
    with pytest.raises(AlreadyPendingCallError):
        envs.step([0, 0])
    alarm.set()
    batch = envs.recv(timeout=LONG_TIMEOUT)
    assert batch.observations.tolist() == [[0, 1], [1, 1]]
    assert batch.infos["took"].tolist() == [LONG, LONG]
    envs.send([1, 2])
    assert envs.recv(timeout=LONG_TIMEOUT).infos["took"].tolist() == [1, 2]
    assert envs.pool.in_flight == 0
    envs.close()


@pytest.mark.parametrize("pause", [0.0, 0.3])
def test_late_reply_is_ignored(pause):
    envs = connected(sleepers(), url="tcp://127.0.0.1:0", timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    set_timeout(envs, 0.15)
    with pytest.raises(ReceiveTimeoutError):
        envs.call("slow", LONG)
    with pytest.raises(ReceiveTimeoutError):
        envs.call("slow", 1)  # waits for the first call
    alarm.set()
    time.sleep(pause)  # replies arrive before or after the next call
    set_timeout(envs, LONG_TIMEOUT)
    assert envs.call("slow", 2) == (2, 2)
    assert envs.call("label") == (0, 1)
    assert envs.step([3, 4])[4]["took"].tolist() == [3, 4]
    envs.close()


def test_call_during_a_late_step():
    envs = connected(sleepers(), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    set_timeout(envs, 0.1)
    with pytest.raises(ReceiveTimeoutError):
        envs.step([LONG, LONG])
    set_timeout(envs, LONG_TIMEOUT)
    threading.Timer(0.1, alarm.set).start()
    assert envs.call("label") == (0, 1)
    assert envs.recv().rewards.tolist() == [1.0, 1.0]
    envs.close()


def test_late_replies_are_not_retained():
    envs = connected(sleepers(), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    set_timeout(envs, 0.05)
    for _ in range(3):
        with pytest.raises(ReceiveTimeoutError):
            envs.call("slow", LONG)
    alarm.set()
    set_timeout(envs, LONG_TIMEOUT)
    assert envs.call("label") == (0, 1)  # its reply arrives after them
    assert not envs.pool._dispatcher.pending.replies
    assert not envs.pool._dispatcher.pending.sent_at
    envs.close()


def test_recv_timeout_keeps_slots_in_flight():
    envs = connected(sleepers(ThreadPool, 3), timeout=LONG_TIMEOUT)
    envs.reset(seed=0)
    envs.send([0, LONG, LONG])
    assert envs.recv(min_slots=1).slots.tolist() == [0]
    start_time = time.monotonic()
    with pytest.raises(ReceiveTimeoutError):
        envs.recv(timeout=0.1)
    assert time.monotonic() - start_time < SOON
    alarm.set()
    assert sorted(envs.recv().slots.tolist()) == [1, 2]
    envs.close()


@pytest.mark.parametrize("method", ["step", "recv", slow("end_step")])
def test_timeout_of_several_servers(method):
    hosts = [shoal.serve({"it": sleepers(count=1)}, place()) for _ in range(2)]
    envs = shoal.connect([f"{host.url}#it" for host in hosts], timeout=1.0)
    envs.reset(seed=0)

    def wait():
        if method == "step":
            envs.step([0, LONG])
        elif method == "recv":
            envs.send([0, LONG])
            envs.recv()
        else:
            envs.pool.begin_step([0, LONG])
            envs.pool.end_step()

    start_time = time.monotonic()
    with pytest.raises(ReceiveTimeoutError):
        wait()
    assert time.monotonic() - start_time < SOON
    alarm.set()
    assert envs.recv(timeout=LONG_TIMEOUT).rewards.tolist() == [1.0, 1.0]
    envs.close()
    for host in hosts:
        host.close()


SERVER = """
import shoal
from shoal.pools import InlinePool
from tests.remote.test_timeouts import Sleeper
server = shoal.serve({{"it": lambda: InlinePool([Sleeper])}}, {url!r})
print("ready", server.url, flush=True)
server.wait()
"""


@pytest.mark.parametrize("shared", [slow(False), True])
def test_timeout_of_a_stopped_server(shared):
    with process(SERVER.format(url="tcp://127.0.0.1:0")) as host:
        envs = shoal.connect(f"{host.ready_args[0]}/it", timeout=LONG_TIMEOUT, shared_memory=shared)
        envs.reset(seed=0)
        set_timeout(envs, 0.5)
        host.stop()
        for wait in (lambda: envs.step([0]), envs.recv, lambda: envs.recv(timeout=0.3)):
            start_time = time.monotonic()
            with pytest.raises(ReceiveTimeoutError):
                wait()
            assert 0.25 < time.monotonic() - start_time < SOON
        with pytest.raises(ReceiveTimeoutError):
            envs.call("label")
        host.signal(signal.SIGCONT)
        set_timeout(envs, LONG_TIMEOUT)
        assert envs.recv().observations.tolist() == [[0, 1]]
        assert envs.step([0])[0].tolist() == [[0, 2]]
        assert envs.call("count") == (2,)
        envs.close()


@pytest.mark.parametrize("on_lost", ["raise", slow("resume")])
def test_timeout_of_the_handshake(on_lost):
    with process(SERVER.format(url="tcp://127.0.0.1:0")) as host:
        host.stop()
        start_time = time.monotonic()
        with pytest.raises(ConnectionError):
            shoal.connect(f"{host.ready_args[0]}/it", timeout=0.5, on_lost=on_lost)
        assert time.monotonic() - start_time < SOON
