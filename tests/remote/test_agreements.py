"""Batch sizes, request limits, session lifetimes and memory use."""

import threading
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError

import shoal
from shoal.errors import RefusedError, SessionLostError
from shoal.pools import InlinePool, ThreadPool
from shoal.testing import ProbeEnv
from tests.remote.peers import SOON, process, wait_until
from tests.remote.proxy import proxied
from tests.remote.serving import connected, place, served


class Gated(gymnasium.Env):
    """Waits in each step until its gate is released."""

    observation_space = spaces.Box(0, 1e6, (), np.float64)
    action_space = spaces.Discrete(10)

    def __init__(self, gate):
        self.gate = gate
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        return np.float64(0.0), {}

    def step(self, action):
        assert self.gate.acquire(timeout=60.0)
        self.steps += 1
        return np.float64(self.steps), float(action), False, False, {}


def gated(count):
    """Return a factory of slots that work concurrently, and the gates of their steps."""
    gates = [threading.Semaphore(0) for _ in range(count)]
    factories = [partial(Gated, gate) for gate in gates]
    return lambda: ThreadPool(factories, workers=count, caller_works=False), gates


# Batches


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_batch_size_first_come_first_served(on_lost):
    factory, gates = gated(5)
    envs = connected(factory, url="tcp://127.0.0.1:0", batch_size=2, on_lost=on_lost)
    envs.reset(seed=0)
    envs.send([0, 1, 2, 3, 4])
    steps = [0] * 5
    for pair in ([3, 1], [1, 4], [3, 0], [2, 0]):
        for slot in pair:
            gates[slot].release()
            steps[slot] += 1
        batch = envs.recv()
        assert sorted(batch.slots.tolist()) == sorted(pair)
        assert batch.observations.tolist() == [steps[slot] for slot in batch.slots.tolist()]
        assert envs.pool.in_flight == 3
        envs.send(batch.slots, batch.slots)
    for gate in gates:
        gate.release()
    assert [len(envs.recv().slots) for _ in range(3)] == [2, 2, 1]
    envs.close()


def test_batches_of_several_servers_first_come_first_served():
    (one, left), (two, right) = gated(2), gated(2)
    with shoal.serve({"it": one}, place()) as first, shoal.serve({"it": two}, place()) as second:
        envs = shoal.connect([f"{first.url}#it", f"{second.url}#it"], batch_size=2)
        envs.reset(seed=0)
        gates = [*left, *right]
        envs.send([0] * 4)
        for pair in ([0, 3], [3, 2], [1, 0]):
            for slot in pair:
                gates[slot].release()
            slots = envs.recv().slots
            assert sorted(slots.tolist()) == sorted(pair)
            envs.send([0, 0], slots)
        for gate in gates:
            gate.release()
        envs.recv()
        envs.recv()
        envs.close()


# Requests


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_max_inflight(on_lost):
    factory, gates = gated(4)
    envs = connected(factory, url="tcp://127.0.0.1:0", on_lost=on_lost, server={"max_inflight": 2})
    envs.reset(seed=0)
    envs.send([0, 0], [0, 1])  # one request
    envs.send([0], [2])
    for ask in (lambda: envs.send([0], [3]), lambda: envs.pool.reset([3])):
        with pytest.raises(
            AlreadyPendingCallError, match="2 requests are in flight, but the server"
        ):
            ask()
    assert envs.pool.in_flight == 3
    assert envs.pool.call("steps", slots=[3]) == [0]  # calls do not count
    gates[2].release()
    assert envs.recv(slots=[2]).observations.tolist() == [1]
    envs.send([0], [3])
    for slot in (0, 1, 3):
        gates[slot].release()
    assert sorted(envs.recv().slots.tolist()) == [0, 1, 3]
    for gate in gates:
        gate.release()
    assert envs.step([0] * 4)[0].tolist() == [2, 2, 2, 2]
    envs.close()


# Sessions


def probes():
    return InlinePool([ProbeEnv] * 2)


def test_session_without_reconnect_ends_after_session_ttl():
    before = ProbeEnv.open_count
    options = {"session_ttl": 1.0, "max_sessions": 1}
    with (
        served(probes, "tcp://127.0.0.1:0", **options) as url,
        proxied(url) as (proxy, through),
    ):
        envs = shoal.connect(through, on_lost="resume", shared_memory=False)
        envs.reset(seed=0)
        port, proxy.port = proxy.port, 1  # no server listens there
        proxy.cut()
        with pytest.raises(RefusedError, match="1 sessions already"):
            shoal.connect(url)
        assert ProbeEnv.open_count == before + 2
        assert wait_until(lambda: ProbeEnv.open_count == before, SOON)
        shoal.connect(url).close()
        proxy.port = port
        with pytest.raises(SessionLostError):
            envs.step(envs.action_space.sample())
        envs.close()


def test_reconnect_restarts_session_ttl():
    with (
        served(probes, "tcp://127.0.0.1:0", session_ttl=1.5) as url,
        proxied(url) as (proxy, through),
    ):
        envs = shoal.connect(through, on_lost="resume", shared_memory=False)
        envs.reset(seed=0)
        port = proxy.port
        for _ in range(3):
            proxy.port = 1
            proxy.cut()
            threading.Timer(0.7, setattr, (proxy, "port", port)).start()
            envs.step(envs.action_space.sample())
        assert envs.stats().reconnects == 3
        envs.close()


def test_session_ttl_of_zero_ends_a_lost_session():
    with (
        shoal.serve({"it": probes}, "tcp://127.0.0.1:0", session_ttl=0.0) as server,
        proxied(f"{server.url}/it") as (proxy, through),
    ):
        envs = shoal.connect(through, on_lost="resume", shared_memory=False)
        envs.reset(seed=0)
        proxy.cut()
        assert wait_until(lambda: server.sessions == 0, SOON)
        with pytest.raises(SessionLostError):
            envs.step(envs.action_space.sample())
        envs.close()


# Memory

SLOTS = """
import gc
import os
import numpy as np
import shoal

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def play(envs, rounds):
    actions = envs.action_space.sample()
    groups = np.array_split(np.arange(envs.num_envs), 8)
    for _ in range(rounds):
        for _ in range(5):
            envs.step(actions)
        for group in groups:
            envs.send(actions[group], group)
        envs.recv(min_slots=1)
        envs.recv()

def factory(num_envs):
    return shoal.make("CartPole-v1", num_envs, backend="kernel")

with shoal.serve({{"it": factory}}, {url!r}) as server:
    options = dict(on_lost={on_lost!r}, shared_memory={shared!r})
    with shoal.connect(server.url + "/it", 8, **options) as few:
        few.reset(seed=0)
        play(few, 2)  # allocate what does not depend on the number of slots
    gc.collect()
    before = resident()
    with shoal.connect(server.url + "/it", {slots}, **options) as envs:
        envs.reset(seed=0)
        play(envs, 10)
        gc.collect()
        some = resident()
        play(envs, 40)
        gc.collect()
        print("ready", some - before, resident() - some, flush=True)
"""


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("shared", [False, True])
def test_memory_per_slot_and_step(shared, on_lost):
    """Both ends together; a batch of the vector itself has 30 bytes per slot."""
    slots = 4096
    script = SLOTS.format(url="tcp://127.0.0.1:0", on_lost=on_lost, shared=shared, slots=slots)
    with process(script) as player:
        held, grown = map(int, player.ready_args)
    assert held / slots < 4_000
    assert grown / slots < 500
