"""``stats()``: requests, times, bytes and reconnects."""

import time

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.pools import InlinePool
from tests.remote.proxy import proxied
from tests.remote.serving import connected, place, served

HEADER = 52
NUM_ENVS = 3
PAUSE = 0.004


class Plain(gymnasium.Env):
    """Has only tensors, of known sizes."""

    observation_space = spaces.Dict(
        a=spaces.Box(0, 255, (5, 2), np.uint8), b=spaces.Box(-1, 1, (3,), np.float32)
    )
    action_space = spaces.Box(-1, 1, (2,), np.float32)
    pause = 0.0

    def _observe(self):
        return {"a": np.zeros((5, 2), np.uint8), "b": np.zeros(3, np.float32)}

    def reset(self, *, seed=None, options=None):
        return self._observe(), {}

    def step(self, action):
        time.sleep(self.pause)
        return self._observe(), 0.0, False, False, {}


class Slow(Plain):
    pause = PAUSE


ACTION = 2 * 4
RESULT = 8 + 1 + 1 + 5 * 2 + 3 * 4  # reward, terminated, truncated, observation
SLOT = 8


def pool(env=Plain):
    return InlinePool([env] * NUM_ENVS)


@pytest.fixture
def listen_at(tmp_path):
    places = {
        "tcp": "tcp://127.0.0.1:0",
        "ws": "ws://127.0.0.1:0",
        "unix": f"unix://{tmp_path}/socket",
        "inproc": place(),
    }
    return places.get


def bytes_of(envs, use):
    """Return the bytes sent and received by a call."""
    before = envs.stats()
    use()
    after = envs.stats()
    return after.bytes_sent - before.bytes_sent, after.bytes_received - before.bytes_received


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
@pytest.mark.parametrize("scheme", ["tcp", "unix", "inproc"])
def test_bytes_per_step(scheme, on_lost, listen_at):
    envs = connected(pool, url=listen_at(scheme), shared_memory=False, on_lost=on_lost)
    envs.reset(seed=0)
    actions = envs.action_space.sample()
    for _ in range(3):
        assert bytes_of(envs, lambda: envs.step(actions)) == (
            HEADER + NUM_ENVS * ACTION,
            HEADER + NUM_ENVS * RESULT,
        )

    def some():
        envs.send(actions[:2], [2, 0])
        envs.recv()

    sent, received = bytes_of(envs, some)
    assert sent == HEADER + 2 * (SLOT + ACTION)
    # The response may be one message, or one per slot.
    assert received - 2 * (SLOT + RESULT) in (HEADER, 2 * HEADER)
    envs.close()


def test_bytes_per_step_over_shared_memory():
    envs = connected(pool, url="tcp://127.0.0.1:0")
    envs.reset(seed=0)
    actions = envs.action_space.sample()
    assert bytes_of(envs, lambda: envs.step(actions)) == (
        HEADER + NUM_ENVS * ACTION,
        HEADER + NUM_ENVS * RESULT,
    )
    envs.close()


@pytest.mark.parametrize("scheme", ["tcp", "unix", "ws", "inproc"])
def test_requests_are_counted(scheme, listen_at):
    envs = connected(pool, url=listen_at(scheme))
    assert envs.stats().requests == 0
    envs.reset(seed=0)
    actions = envs.action_space.sample()
    for _ in range(5):
        envs.step(actions)
    envs.send(actions[:1], [1])
    envs.recv()
    envs.step(actions, deadlines=20.0)
    envs.get_attr("pause")
    envs.cancel()
    stats = envs.stats()
    assert stats.requests == 1 + 5 + 1 + 1 + 1 + 1
    assert stats.reconnects == 0
    envs.close()


def test_rejected_calls_are_not_counted():
    envs = connected(pool)
    envs.reset(seed=0)
    before = envs.stats()
    for bad in (np.zeros((NUM_ENVS + 1, 2), np.float32), "nothing"):
        with pytest.raises((ValueError, TypeError, gymnasium.error.Error)):
            envs.step(bad)
    after = envs.stats()
    assert (after.requests, after.bytes_sent) == (before.requests, before.bytes_sent)
    envs.close()


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("how", ["step", "send"])
def test_server_time_is_part_of_round_trip(how, shared):
    envs = connected(lambda: pool(Slow), url="tcp://127.0.0.1:0", shared_memory=shared)
    envs.reset(seed=0)
    actions = envs.action_space.sample()
    start_time = time.perf_counter()
    for _ in range(20):
        if how == "step":
            envs.step(actions)
        else:
            envs.send(actions)
            envs.recv()
    longest = time.perf_counter() - start_time
    stats = envs.stats()
    assert PAUSE <= stats.server_time <= stats.round_trip <= stats.round_trip_p95
    assert how == "send" or stats.server_time >= NUM_ENVS * PAUSE
    assert stats.round_trip_p95 < longest
    envs.close()


def test_times_are_zero_before_the_first_request():
    envs = connected(pool)
    stats = envs.stats()
    assert (stats.server_time, stats.round_trip, stats.round_trip_p95) == (0.0, 0.0, 0.0)
    assert (stats.requests, stats.reconnects) == (0, 0)
    assert stats.transport in str(envs.pool._target.address)
    envs.close()


@pytest.mark.parametrize("shared", [True, False])
def test_reconnects_and_bytes_of_lost_connections_are_counted(shared):
    with served(pool, "tcp://127.0.0.1:0") as url, proxied(url) as (proxy, through):
        envs = shoal.connect(through, on_lost="resume", shared_memory=shared)
        envs.reset(seed=0)
        actions = envs.action_space.sample()
        for losses in range(1, 4):
            before = envs.stats()
            proxy.cut()
            steps = 0
            while not steps or (shared and envs.stats().reconnects < losses):
                envs.step(actions)  # over shared memory, a cut is noticed with a delay
                steps += 1
            after = envs.stats()
            assert after.reconnects == losses
            assert after.requests == before.requests + steps
            assert after.bytes_sent >= before.bytes_sent + steps * (HEADER + NUM_ENVS * ACTION)
            received = before.bytes_received + steps * (HEADER + NUM_ENVS * RESULT)
            assert after.bytes_received >= received
        envs.close()
