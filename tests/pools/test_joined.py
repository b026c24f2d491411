"""Tests of the pool that is made of several pools."""

import threading
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError

from shoal.errors import InvalidActionError, ReceiveTimeoutError, SpaceMismatchError
from shoal.pools import InlinePool, ThreadPool
from shoal.pools._joined import JoinedPool
from shoal.testing import ProbeEnv, PythonPoolConformance
from shoal.vector import AutoresetMode

WAITS, FAILS = 8, 9
"""Actions of a step that waits for an event, and of a step that fails."""


class Counter(gymnasium.Env):
    """Observes its label, its seed, and the number of steps of its episode."""

    observation_space = spaces.Box(-1, 1e6, (3,), np.float64)
    action_space = spaces.Discrete(10)
    released = threading.Event()

    def __init__(self, label):
        self.label = label

    def _observation(self):
        return np.array([self.label, self._seed, self._steps], np.float64)

    def reset(self, *, seed=None, options=None):
        self._steps, self._seed = 0, -1 if seed is None else seed
        return self._observation(), {"options": options}

    def step(self, action):
        if action == WAITS:
            self.released.wait(20.0)
        if action == FAILS:
            raise ArithmeticError("the step fails as requested")
        self._steps += 1
        return self._observation(), float(self.label), False, False, {"label": self.label}

    def fails(self):
        if self.label == 3:
            raise LookupError("label 3")


def counters(first, count, pool=InlinePool, **options):
    """Return a pool whose slots have the labels first, first + 1, ..."""
    if pool is ThreadPool:  # one thread per slot
        options |= {"workers": count, "caller_works": False}
    return pool([partial(Counter, first + k) for k in range(count)], **options)


def joined_pool(*pools):
    """Return a pool of these pools, reset with the seeds 100, 101, 102, ..."""
    pool = JoinedPool(pools)
    pool.reset(seeds=range(100, 100 + pool.num_envs))
    pool.recv()
    return pool


@pytest.fixture
def inline():
    """Six slots in pools of three, one and two."""
    pool = joined_pool(counters(0, 3), counters(3, 1), counters(4, 2))
    yield pool
    pool.close()


@pytest.fixture
def threads():
    """Five slots in pools of two and three, each slot with its own thread."""
    Counter.released.clear()
    pool = joined_pool(counters(0, 2, ThreadPool), counters(2, 3, ThreadPool))
    yield pool
    Counter.released.set()
    pool.close()


class TestUneven(PythonPoolConformance):
    """The conformance tests, for pools of different sizes and kinds."""

    test_a_constructor_that_fails_leaves_nothing_open = None  # each part builds its environments
    # The error names the slot within the part, and the first slot of the part; tested below.
    test_an_exception_keeps_its_type_and_names_the_slot = None

    def make_python_pool(self, factories, **options):
        options.pop("copy", None)
        threads = partial(ThreadPool, workers=2, caller_works=False)
        parts = [
            (InlinePool, factories[:1]),
            (threads, factories[1:4]),
            (InlinePool, factories[4:]),
        ]
        return JoinedPool([make(part, **options) for make, part in parts if part])


# The order of slots


def test_slots_are_in_the_order_of_their_pools(inline):
    observations, rewards, *_, infos = inline.step([0] * 6)
    assert observations.tolist() == [[k, 100 + k, 1] for k in range(6)]
    assert rewards.tolist() == list(range(6))
    assert [(row, info["label"]) for row, info in infos[0]] == [(k, k) for k in range(6)]


@pytest.mark.parametrize("slots", [[5, 0, 3, 2], [4], [3, 1], np.array([2, 4])], ids=repr)
def test_chosen_slots_are_returned_in_the_requested_order(slots, inline):
    expected = [[slot, 100 + slot, 1] for slot in slots]
    inline.send([0] * len(slots), slots)
    batch = inline.recv(slots=slots)
    assert batch.slots.tolist() == list(slots)
    assert batch.observations.tolist() == expected
    assert inline.latest(slots).tolist() == expected
    assert inline.call("label", slots=slots) == list(slots)


def test_seeds_and_options_reach_their_slots(inline):
    inline.reset([4, 0, 3], [7, None, 9], {"key": "value"})
    batch = inline.recv(slots=[4, 0, 3])
    assert batch.observations.tolist() == [[4, 7, 0], [0, -1, 0], [3, 9, 0]]
    assert [info["options"] for _, info in batch.infos[0]] == [{"key": "value"}] * 3


def test_actions_reach_their_slots(threads):
    threads.send([WAITS, 0, 0], [3, 1, 4])
    assert sorted(threads.recv(min_slots=2).slots) == [1, 4]
    assert threads.in_flight == 1
    Counter.released.set()
    assert threads.recv().observations.tolist() == [[3, 103, 1]]


def test_done_slots_do_not_wait_for_another_pool(threads):
    threads.send([WAITS, WAITS, 0, 0, 0])
    for _ in range(3):
        assert sorted(threads.recv(min_slots=3).slots) == [2, 3, 4]
        threads.send([0, 0, 0], [2, 3, 4])
        assert threads.in_flight == 5
    Counter.released.set()
    assert sorted(threads.recv().slots) == [0, 1, 2, 3, 4]


# Timeouts


@pytest.mark.parametrize("method", ["step", "recv"])
def test_after_a_timeout_everything_can_still_be_received(method, threads):
    threads.begin_step([0, 0, 0, 0, WAITS]) if method == "step" else threads.send([0] * 4 + [WAITS])
    receive = threads.end_step if method == "step" else threads.recv
    for _ in range(2):
        start = time.monotonic()
        with pytest.raises(ReceiveTimeoutError):
            receive(timeout=0.05)
        assert time.monotonic() - start < 10.0
        assert threads.in_flight == 5
    Counter.released.set()
    results = receive(timeout=10.0)
    observations = results[0] if method == "step" else results.observations
    assert observations[:, 2].tolist() == [1] * 5


# Failures


@pytest.mark.parametrize("slot", range(6))
def test_pool_is_usable_after_a_slot_failed(slot, inline):
    actions = [0] * 6
    actions[slot] = FAILS
    with pytest.raises(ArithmeticError, match="as requested") as caught:
        inline.step(actions)
    first = {0: 0, 1: 3, 2: 4}[np.searchsorted([3, 4], slot, side="right")]
    notes = " ".join(caught.value.__notes__)
    assert f"slot {slot - first} of" in notes
    assert f"whose slot 0 is slot {first} of 6" in notes
    assert inline.in_flight == 0
    assert inline.step([0] * 6)[1].tolist() == list(range(6))


def test_slots_of_other_pools_are_received_after_a_failure(threads):
    threads.send([0, FAILS, 0, 0, 0])
    with pytest.raises(ArithmeticError):
        threads.recv()
    assert sorted(threads.recv().slots) == [0, 2, 3, 4]
    assert threads.in_flight == 0
    with pytest.raises(NoAsyncCallError):
        threads.recv()


@pytest.mark.parametrize("method", ["step", "send"])
def test_no_pool_is_sent_actions_if_one_is_invalid(method, inline):
    with pytest.raises(InvalidActionError):
        getattr(inline, method)([0, 0, 0, 0, 0, 10])
    assert inline.in_flight == 0
    assert inline.latest()[:, 2].tolist() == [0] * 6


def test_call_raises_errors_of_environments(inline):
    with pytest.raises(LookupError, match="label 3"):
        inline.call("fails")
    assert inline.call("fails", slots=[0, 5]) == [None, None]


# Interrupts


class Interrupted:
    """Replaces a method of a pool so that it raises KeyboardInterrupt, before or after its work."""

    def __init__(self, pool, name, *, after):
        self.pool, self.name, self.after = pool, name, after
        self._method = getattr(pool, name)

    def __call__(self, *args, **kwargs):
        if self.after:
            self._method(*args, **kwargs)
        raise KeyboardInterrupt

    def __enter__(self):
        setattr(self.pool, self.name, self)

    def __exit__(self, kind, *_):
        delattr(self.pool, self.name)
        assert kind is KeyboardInterrupt
        return True


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("method", ["send", "reset"])
def test_only_accepted_slots_are_in_flight_after_an_interrupt(method, part, after, threads):
    accepted = list(range([0, 2, 5][part + after]))
    with Interrupted(threads.pools[part], method, after=after):
        threads.send([0] * 5) if method == "send" else threads.reset()
    assert threads.in_flight == len(accepted) == sum(pool.in_flight for pool in threads.pools)
    if accepted:
        assert sorted(threads.recv().slots) == accepted
    assert threads.step([0] * 5)[0].shape == (5, 3)
    threads.reset()
    assert threads.recv().observations[:, 2].tolist() == [0] * 5


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("part", [0, 1])
def test_pool_is_usable_after_an_interrupted_step(part, after, threads):
    with Interrupted(threads.pools[part], "begin_step", after=after):
        threads.step([0] * 5)
    if threads.in_flight:
        threads.recv()
    assert sum(pool.in_flight for pool in threads.pools) == 0
    assert threads.step([0] * 5)[0].shape == (5, 3)


# Construction and closing


def test_pools_with_different_spaces_or_modes_are_rejected():
    one = counters(0, 1)
    probes = InlinePool([ProbeEnv])
    same_step = counters(0, 1, autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(SpaceMismatchError, match="single_observation of part 1"):
        JoinedPool([one, probes])
    with pytest.raises(SpaceMismatchError, match="autoreset mode of part 2 is SAME_STEP"):
        JoinedPool([one, one, same_step])
    for pool in (one, probes, same_step):
        pool.close()


@pytest.mark.parametrize("method", ["step", "send"])
def test_slot_in_flight_cannot_be_sent(method, threads):
    threads.send([WAITS], [3])
    with pytest.raises(AlreadyPendingCallError, match="slot 3 is in flight"):
        getattr(threads, method)([0] * 5)
    assert threads.in_flight == 1
    Counter.released.set()
    threads.drop()
    assert threads.in_flight == 0
    assert threads.step([0] * 5)[0][3, 2] == 2


def test_all_pools_are_closed_if_closing_one_fails():
    pools = [counters(0, 1), counters(1, 1), counters(2, 1)]
    pool = JoinedPool(pools)
    with Interrupted(pools[1], "close", after=True):
        pool.close()
    for part in pools:
        with pytest.raises(ClosedEnvironmentError):
            part.latest([0])
