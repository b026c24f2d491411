"""Connections and sessions that cannot be resumed."""

import threading
import time
from contextlib import contextmanager

import pytest

import shoal
from shoal.errors import ConnectionLostError, SessionLostError
from shoal.pools import InlinePool
from shoal.testing import ProbeEnv
from tests.remote.proxy import POINTS, RESPONSE, cut_at, proxied
from tests.remote.serving import served
from tests.remote.test_faults import FACTORIES, NUM_ENVS, actions_for, connected, hosted


@pytest.mark.parametrize("point", POINTS)
def test_cut_raises_without_resuming(point):
    with hosted(cut_at(point, {2})) as host:
        envs = connected(host.url, timeout=20.0)
        envs.reset(seed=0)
        actions = actions_for(envs, 0).sample()
        start_time = time.monotonic()
        if POINTS[point] == (RESPONSE, "after"):
            envs.step(actions)
        with pytest.raises(ConnectionLostError):
            envs.step(actions)
        with pytest.raises(ConnectionLostError):
            envs.recv() if envs.pool.in_flight else envs.step(actions)
        assert time.monotonic() - start_time < 2.0
        envs.close()
        assert max(host.executed()) <= 1


def test_cut_ends_the_session_without_resuming():
    with hosted() as host:
        envs = connected(host.url, timeout=20.0)
        envs.reset(seed=0)
        before = ProbeEnv.open_count
        host.proxy.cut()
        until = time.monotonic() + 5.0
        while ProbeEnv.open_count > before - NUM_ENVS and time.monotonic() < until:
            time.sleep(0.01)
        assert ProbeEnv.open_count == before - NUM_ENVS
        envs.close()


def test_reconnect_timeout():
    with hosted() as host:
        envs = connected(host.url, on_lost="resume", timeout=0.8)
        envs.reset(seed=0)
        host.proxy.close()
        start_time = time.monotonic()
        with pytest.raises(ConnectionLostError) as caught:
            envs.step(actions_for(envs, 0).sample())
        assert 0.3 < time.monotonic() - start_time < 2.0
        assert not isinstance(caught.value, SessionLostError)
        envs.close()


@contextmanager
def restarted():
    """Return a client's URL, and a function that replaces its server by a new one."""
    factory = lambda: InlinePool(FACTORIES)  # noqa: E731
    with (
        served(factory, "tcp://127.0.0.1:0") as first,
        served(factory, "tcp://127.0.0.1:0") as second,
        proxied(first) as (proxy, through),
    ):

        def restart():
            proxy.port = int(second.rpartition("/")[0].rpartition(":")[2])
            proxy.cut()

        yield through, restart


def test_restarted_server_has_lost_the_session():
    with restarted() as (url, restart):
        envs = connected(url, on_lost="resume", timeout=5.0)
        envs.reset(seed=0)
        actions = actions_for(envs, 0).sample()
        envs.step(actions)
        restart()
        start_time = time.monotonic()
        with pytest.raises(SessionLostError):
            envs.step(actions)
        with pytest.raises(ConnectionLostError):
            envs.step(actions)
        assert time.monotonic() - start_time < 2.0
        envs.close()


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_server_restarted_at_the_same_port_has_lost_the_session(on_lost):
    factory = {"it": lambda: InlinePool(FACTORIES)}
    first = shoal.serve(factory, "tcp://127.0.0.1:0")
    first_url = first.url
    envs = connected(f"{first_url}/it", on_lost=on_lost, timeout=5.0)
    envs.reset(seed=0)
    first.close()
    with shoal.serve(factory, first_url):
        kind = SessionLostError if on_lost == "resume" else ConnectionLostError
        with pytest.raises(kind):
            envs.step(actions_for(envs, 0).sample())
        again = connected(f"{first_url}/it", timeout=5.0)
        again.reset(seed=0)
        again.close()
        envs.close()


def test_truncate_resets_slots_of_a_lost_session():
    with restarted() as (url, restart):
        envs = connected(url, on_lost="truncate", timeout=5.0)
        envs.reset(seed=0)
        space = actions_for(envs, 0)
        envs.step(space.sample())
        restart()
        observations, rewards, terminated, truncated, infos = envs.step(space.sample())
        assert truncated.all()
        assert not terminated.any()
        assert not rewards.any()
        assert infos["crashed"].all()
        assert observations in envs.observation_space
        assert set(observations["word"]) == {"t0"}
        for _ in range(3):
            observations, _, _, truncated, infos = envs.step(space.sample())
            assert "crashed" not in infos
        assert observations in envs.observation_space
        envs.close()


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_close_without_server_is_fast(on_lost):
    server = shoal.serve({"it": lambda: InlinePool(FACTORIES)}, "tcp://127.0.0.1:0")
    envs = connected(f"{server.url}/it", on_lost=on_lost, timeout=3.0)
    envs.reset(seed=0)
    server.close()
    with pytest.raises(ConnectionLostError):
        envs.step(actions_for(envs, 0).sample())
    start_time = time.monotonic()
    envs.close()
    assert time.monotonic() - start_time < 1.0


def test_every_call_raises_after_a_loss():
    with hosted() as host:
        envs = connected(host.url, timeout=5.0)
        envs.reset(seed=0)
        host.proxy.cut()
        actions = actions_for(envs, 0).sample()
        for _ in range(3):
            with pytest.raises(ConnectionLostError):
                envs.step(actions)
        with pytest.raises(ConnectionLostError):
            envs.reset(seed=0)
        envs.close()


@pytest.mark.parametrize("busy", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_session_ttl_starts_with_the_loss(busy):
    class Slow(ProbeEnv):
        def step(self, action):
            time.sleep(1.1)
            return super().step(action)

    with (
        served(lambda: InlinePool([Slow]), "tcp://127.0.0.1:0", session_ttl=0.9) as url,
        proxied(url) as (proxy, through),
    ):
        envs = connected(through, on_lost="resume", timeout=10.0)
        envs.reset(seed=0)
        actions = actions_for(envs, 0).sample()
        if busy:
            envs.pool.begin_step(actions)
        time.sleep(0.1 if busy else 1.1)
        port, proxy.port = proxy.port, 1  # no server listens there
        proxy.cut()
        threading.Timer(0.9 if busy else 0.1, setattr, (proxy, "port", port)).start()
        if busy:
            assert len(envs.recv().slots) == 1
        else:
            envs.reset(seed=1)
        envs.close()
