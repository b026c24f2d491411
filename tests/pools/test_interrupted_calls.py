"""Sends, receives and calls that are interrupted at any line leave the pool consistent."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from shoal.errors import VectorFailedError
from shoal.pools import InlinePool, ProcessPool, ThreadPool
from tests.faulty import FaultyEnv, fault
from tests.interrupting import Lines

NUM_ENVS = 5


class CountingEnv(gymnasium.Env):
    """Observes how often it was stepped."""

    observation_space = spaces.Box(0, 1e9, (1,), np.float64)
    action_space = spaces.Discrete(2)

    def __init__(self, label):
        self.label = label
        self.steps = 0

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1), {}

    def step(self, action):
        self.steps += 1
        return np.full(1, float(self.steps)), 0.0, False, False, {"label": self.label}


MAKERS = {
    "inline": InlinePool,
    "thread": partial(ThreadPool, workers=2),
    "process": partial(ProcessPool, workers=2, start="fork"),
}


def started(backend):
    pool = MAKERS[backend]([partial(CountingEnv, label) for label in range(NUM_ENVS)])
    pool.reset()
    pool.recv()
    return pool


def send_and_receive(pool):
    pool.send([0] * NUM_ENVS)
    pool.recv(slots=[3, 1])
    pool.send([0], slots=[3])
    pool.recv(min_slots=2)
    if pool.in_flight:
        pool.recv()


def check_consistent(pool):
    """Check that everything in flight can be received, and that every slot can be stepped."""
    if pool.in_flight:
        slots = pool.recv(timeout=10.0).slots
        assert len(slots) == len(set(slots.tolist()))
    assert pool.in_flight == 0
    before = np.array(pool.call("steps"))
    pool.send([1] * NUM_ENVS)
    batch = pool.recv(timeout=10.0)
    assert batch.slots.tolist() == list(range(NUM_ENVS))
    assert batch.observations.ravel().tolist() == (before + 1).tolist()
    assert [info["label"] for _, info in batch.raw_infos[0]] == list(range(NUM_ENVS))


# Every line in the slow run, every third one otherwise.
STRIDES = [3, pytest.param(1, marks=pytest.mark.slow)]


def interrupt_at_every_line(backend, use, check, stride=1):
    pool = started(backend)
    interrupts = 0
    for number in range(0, 5000, stride):
        with Lines(number) as lines:
            use(pool)
        if not lines.where:
            break
        interrupts += 1
        try:
            check(pool)
        except VectorFailedError:  # interrupted while a message was being sent, or in a step
            pool.close()
            pool = started(backend)
        except Exception as error:
            raise AssertionError(f"after an interrupt at {lines.where}") from error
    assert interrupts > 20 / stride
    pool.close()


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("backend", MAKERS)
def test_sends_and_receives_can_be_interrupted_at_any_line(backend, stride):
    interrupt_at_every_line(backend, send_and_receive, check_consistent, stride)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("stride", STRIDES)
@pytest.mark.parametrize("backend", ["thread", "process"])
def test_a_call_can_be_interrupted_at_any_line(backend, stride):
    def check(pool):
        assert pool.end_call(pool.begin_call("label", (), {}), timeout=10.0) == [*range(NUM_ENVS)]

    interrupt_at_every_line(backend, lambda pool: pool.call("label"), check, stride)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", ["thread", "process"])
def test_results_of_a_call_can_be_requested_again_after_an_interrupt(backend):
    calls = []

    def use(pool):
        pool.end_call(calls[-1])

    def begin(pool):
        calls.append(pool.begin_call("label", (), {}))

    pool = started(backend)
    for number in range(1000):
        begin(pool)
        with Lines(number) as lines:
            use(pool)
        if not lines.where:
            break
        try:
            assert pool.end_call(calls[-1], timeout=10.0) == [*range(NUM_ENVS)]
        except VectorFailedError:
            pool.close()
            pool = started(backend)
        except Exception as error:
            raise AssertionError(f"after an interrupt at {lines.where}") from error
    assert number > 10
    pool.close()


class InterruptedGroup:
    """Forwards to a worker group, and is interrupted right after announcing a message."""

    def __init__(self, group):
        self._group = group

    def announce_message(self, worker):
        self._group.announce_message(worker)
        raise KeyboardInterrupt

    def __getattr__(self, name):
        return getattr(self._group, name)


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_a_message_that_was_announced_but_not_sent_makes_the_pool_unusable(backend):
    pool = started(backend)
    group = pool._messenger._group
    pool._messenger._group = InterruptedGroup(group)
    with pytest.raises(KeyboardInterrupt):
        pool.call("label")
    pool._messenger._group = group
    with pytest.raises(VectorFailedError, match="was cut off"):
        pool.end_call(pool.begin_call("label", (), {}), timeout=5.0)
    pool.close(timeout=0.3)


@pytest.mark.parametrize("backend", ["thread", "process"])
def test_replies_to_abandoned_calls_are_discarded(backend):
    pool = started(backend)
    early = pool.begin_call("label", (), {})
    late = pool.begin_call("label", (), {})
    assert pool.end_call(late) == [*range(NUM_ENVS)]  # the replies to the first have arrived
    pool.abandon_call(early)
    pool.abandon_call(pool.begin_call("label", (), {}))
    assert pool.call("label") == [*range(NUM_ENVS)]
    assert pool._messenger.pending_replies == 0
    pool.close()


@pytest.mark.parametrize("backend", ["thread", "process"])
@pytest.mark.parametrize("send", ["send", "begin_step"])
def test_drop_discards_every_slot_before_it_raises(backend, send):
    pool = MAKERS[backend]([partial(FaultyEnv, label) for label in range(NUM_ENVS)])
    pool.reset()
    pool.recv()
    getattr(pool, send)([fault("raise"), *[fault("nothing")] * (NUM_ENVS - 1)])
    with pytest.raises(ArithmeticError, match="0 fails as asked"):
        pool.drop()
    assert pool.in_flight == 0
    pool.reset()
    assert pool.recv().observations[:, 1].tolist() == [0.0] * NUM_ENVS
    pool.close()
