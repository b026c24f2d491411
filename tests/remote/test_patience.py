"""Explicit timeouts are kept; the default timeout is extended by expected durations."""

import math
import threading
import time
from contextlib import contextmanager

import pytest

import shoal
from shoal.errors import ConnectionLostError, ProtocolError, ReceiveTimeoutError
from shoal.remote._wire import Kind
from tests.remote.peers import LONG, SOON, Cell, WakeableCell, wait_until
from tests.remote.proxy import proxied, rewriting
from tests.remote.serving import TCP, connected, served

EXPECTED_SECONDS = 60.0


class LongStepCell(WakeableCell):
    """Expects a long step, which ends as soon as it is woken."""

    seconds = EXPECTED_SECONDS

    def expected_duration(self, slots, actions):
        return self.seconds if max(actions) else 0.0


def await_expected_duration(envs):
    """Receive the expected durations of the steps in flight."""

    def has_arrived():
        with pytest.raises(ReceiveTimeoutError):
            envs.recv(timeout=0.01)
        parts = getattr(envs.pool, "pools", [envs.pool])
        return any(pool.announced == EXPECTED_SECONDS for pool in parts)

    assert wait_until(has_arrived)


@contextmanager
def within(at_most):
    start_time = time.monotonic()
    yield
    assert time.monotonic() - start_time < at_most


@contextmanager
def long_step(joined, timeout):
    """A cell, and a client that has received a long expected duration for slots 0 to 2."""
    cell = LongStepCell()
    with served(lambda: cell) as one, served(Cell) as other:
        envs = shoal.connect([one, other] if joined else one, timeout=timeout)
        try:
            envs.reset()
            envs.send([LONG] * 3 + [0] * (envs.num_envs - 3))
            await_expected_duration(envs)
            yield cell, envs
        finally:
            cell.woken.set()
            envs.close()


@pytest.mark.parametrize("joined", [False, True])
def test_explicit_timeout_is_not_extended(joined):
    with long_step(joined, 60.0) as (cell, envs):
        for _ in range(2):
            with within(SOON), pytest.raises(ReceiveTimeoutError):
                envs.recv(timeout=0.1)
        cell.woken.set()
        assert envs.recv(timeout=SOON).observations[:, 1].tolist() == [1] * envs.num_envs


@pytest.mark.parametrize("joined", [False, True])
def test_default_timeout_is_extended(joined):
    with long_step(joined, 0.6) as (cell, envs):
        threading.Timer(1.2, cell.woken.set).start()
        assert envs.recv().observations[:, 1].tolist() == [1] * envs.num_envs


# Invalid expected durations


@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan, "soon"])
def test_invalid_expected_duration_fails_the_step(seconds):
    cell = LongStepCell()
    envs = connected(lambda: cell, timeout=20.0)
    envs.reset()
    cell.seconds = seconds
    match = (
        "could not convert" if seconds == "soon" else "expected_duration must be a finite number"
    )
    with within(SOON), pytest.raises(ValueError, match=match):
        envs.step([LONG, LONG, LONG])
    assert cell.executed == []
    assert envs.step([0, 0, 0])[0][:, 1].tolist() == [1, 1, 1]
    envs.close()


@pytest.mark.parametrize("seconds", [math.inf, -math.inf, math.nan])
def test_invalid_expected_duration_is_a_protocol_error(seconds):
    cell = LongStepCell()
    with (
        served(lambda: cell, TCP) as url,
        rewriting(url, {Kind.EXPECTED_DURATION: {"seconds": seconds}}) as (_, through),
    ):
        envs = shoal.connect(through, timeout=20.0, shared_memory=False)
        envs.reset()
        try:
            with within(SOON), pytest.raises(ProtocolError, match="expected duration"):
                envs.step([LONG, LONG, LONG])
            with pytest.raises(ProtocolError):
                envs.reset()
        finally:
            cell.woken.set()
            envs.close()


# Unreachable servers


@pytest.mark.parametrize("on_lost", ["resume", "truncate"])
def test_explicit_timeout_while_server_is_unreachable(on_lost):
    cell = WakeableCell()
    with served(lambda: cell, TCP) as url, proxied(url) as (proxy, through):
        envs = shoal.connect(through, on_lost=on_lost, timeout=60.0, shared_memory=False)
        envs.reset()
        envs.send([LONG, LONG, LONG])
        port, proxy.port = proxy.port, 1  # no server listens there
        proxy.cut()
        for _ in range(3):
            with within(SOON), pytest.raises(ReceiveTimeoutError):
                envs.recv(timeout=0.1)
        proxy.port = port
        cell.woken.set()
        assert envs.recv().observations[:, 1].tolist() == [1, 1, 1]
        assert envs.stats().reconnects == 1
        envs.close()


@pytest.mark.parametrize("on_lost", ["raise", "resume", "truncate"])
def test_other_servers_work_while_one_is_unreachable(on_lost):
    cell = WakeableCell()
    with (
        served(lambda: cell, TCP) as one,
        served(Cell) as other,
        proxied(one) as (proxy, through),
    ):
        envs = shoal.connect([through, other], on_lost=on_lost, timeout=60.0, shared_memory=False)
        envs.reset()
        envs.send([LONG] * 3 + [0] * 3)
        proxy.close()
        with within(SOON):
            if on_lost == "raise":
                with pytest.raises(ConnectionLostError):
                    envs.recv()
            assert sorted(envs.recv(min_slots=3).slots) == [3, 4, 5]
            for k in (2, 3):
                envs.send([0, 0, 0], [3, 4, 5])
                assert envs.recv(slots=[3, 4, 5]).observations[:, 1].tolist() == [k] * 3
            cell.woken.set()
            envs.close()
