"""Interrupts between any two lines: no step is executed twice, and no result is lost."""

import signal
import threading
import time
from functools import partial

import pytest

from tests.faulty import FaultyEnv, fault
from tests.interrupting import Lines
from tests.pools.ray.pools import ray_pool

pytestmark = pytest.mark.usefixtures("ray_here")

NOTHING = [fault("nothing")] * 4


@pytest.fixture(scope="module")
def pool(ray_here):
    pool = ray_pool([partial(FaultyEnv, label) for label in range(4)], [2, 2])
    pool.reset()
    pool.recv()
    yield pool
    pool.close()


def step_counts(pool):
    """Return how many steps each slot has made."""
    return pool.latest()[:, 1].tolist()


def step(pool):
    pool.step(NOTHING)


def send_and_receive(pool):
    pool.send(NOTHING[:2], [0, 2])
    pool.send(NOTHING[2:], [3, 1])
    pool.recv(min_slots=1)


def step_in_halves(pool):
    pool.begin_step(NOTHING)
    pool.end_step(5.0)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stride", [11, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("operation", [step, send_and_receive, step_in_halves])
def test_interrupted_step_is_executed_once_or_not_at_all(pool, operation, stride):
    interrupted_at = set()
    for number in range(1, 5000, stride):
        before = step_counts(pool)
        with Lines(number) as lines:
            operation(pool)
        in_flight = pool.in_flight
        while pool.in_flight:
            pool.recv(timeout=10.0)
        after = step_counts(pool)
        counts = [now - then for now, then in zip(after, before, strict=True)]
        assert set(counts) <= {0, 1}, lines.where
        if operation is not send_and_receive:
            assert len(set(counts)) == 1, lines.where
            assert not in_flight or counts == [1] * 4, lines.where
        pool.step(NOTHING)
        assert step_counts(pool) == [count + 1 for count in after], lines.where
        if not lines.where:
            break
        interrupted_at.add(lines.where)
    assert len(interrupted_at) > 100 / stride


def test_ctrl_c_interrupts_waiting(pool):
    threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        pool.step([fault("wait")] * 4)
    assert time.monotonic() - start < 0.35
    assert pool.recv().rewards.tolist() == [0, 1, 2, 3]


def interrupt_restart(number):
    pool = ray_pool([FaultyEnv] * 2, [1, 1], ray_options={"on_crash": "restart"})
    pool.reset()
    pool.recv()
    pool.begin_step([fault("kill"), NOTHING[0]])
    time.sleep(0.3)
    with Lines(number) as lines:
        pool.end_step()
    if pool.in_flight:
        assert pool.recv().truncated.tolist() == [True, False]
    assert not pool.step(NOTHING[:2])[3].any()
    pool.close()
    return bool(lines.where)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_restart_is_completed_after_an_interrupt_at_any_line():
    number = 1
    while interrupt_restart(number):
        number += 2
    assert number > 100
