"""Several pools as one: slots in their order, one failure at a time, and nothing half in flight."""

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
"""Actions of a step that ends when it is let go, and of one that fails."""


class Counter(gymnasium.Env):
    """Observes its label, its seed, and how many steps its episode has."""

    observation_space = spaces.Box(-1, 1e6, (3,), np.float64)
    action_space = spaces.Discrete(10)
    is_let_go = threading.Event()

    def __init__(self, label):
        self.label = label

    def _seen(self):
        return np.array([self.label, self._seed, self._steps], np.float64)

    def reset(self, *, seed=None, options=None):
        self._steps, self._seed = 0, -1 if seed is None else seed
        return self._seen(), {"options": options}

    def step(self, action):
        if action == WAITS:
            self.is_let_go.wait(20.0)
        if action == FAILS:
            raise ArithmeticError("it fails as asked")
        self._steps += 1
        return self._seen(), float(self.label), False, False, {"label": self.label}

    def fails(self):
        if self.label == 3:
            raise LookupError("nothing there")


def counters(first, count, pool=InlinePool, **options):
    """A pool whose slots have labels from this one on."""
    if pool is ThreadPool:  # each slot has a thread of its own
        options |= {"workers": count, "caller_works": False}
    return pool([partial(Counter, first + k) for k in range(count)], **options)


def joined(*pools):
    """Pools as one, reset with the seeds 100, 101, 102, ..."""
    pool = JoinedPool(pools)
    pool.reset(seeds=range(100, 100 + pool.num_envs))
    pool.recv()
    return pool


@pytest.fixture
def inline():
    """Six slots in pools of three, one and two."""
    pool = joined(counters(0, 3), counters(3, 1), counters(4, 2))
    yield pool
    pool.close()


@pytest.fixture
def threads():
    """Five slots, in pools of two and three, which do not wait for each other."""
    Counter.is_let_go.clear()
    pool = joined(counters(0, 2, ThreadPool), counters(2, 3, ThreadPool))
    yield pool
    Counter.is_let_go.set()
    pool.close()


class TestUneven(PythonPoolConformance):
    """Pools of different sizes and kinds keep the contract as one."""

    test_a_constructor_that_fails_leaves_nothing_open = None  # each part has its own
    # It names the slot of the part, and where the part begins; see below.
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


def test_slots_follow_each_other_in_the_order_of_their_pools(inline):
    observations, rewards, *_, infos = inline.step([0] * 6)
    assert observations.tolist() == [[k, 100 + k, 1] for k in range(6)]
    assert rewards.tolist() == list(range(6))
    assert [(row, info["label"]) for row, info in infos[0]] == [(k, k) for k in range(6)]


@pytest.mark.parametrize("slots", [[5, 0, 3, 2], [4], [3, 1], np.array([2, 4])], ids=repr)
def test_some_slots_come_back_in_the_order_in_which_they_are_asked_for(slots, inline):
    expected = [[slot, 100 + slot, 1] for slot in slots]
    inline.send([0] * len(slots), slots)
    batch = inline.recv(slots=slots)
    assert batch.slots.tolist() == list(slots)
    assert batch.observations.tolist() == expected
    assert inline.latest(slots).tolist() == expected
    assert inline.call("label", slots=slots) == list(slots)


def test_seeds_and_options_reach_their_slots(inline):
    inline.reset([4, 0, 3], [7, None, 9], {"how": "gently"})
    batch = inline.recv(slots=[4, 0, 3])
    assert batch.observations.tolist() == [[4, 7, 0], [0, -1, 0], [3, 9, 0]]
    assert [info["options"] for _, info in batch.infos[0]] == [{"how": "gently"}] * 3


def test_actions_reach_their_slots(threads):
    threads.send([WAITS, 0, 0], [3, 1, 4])
    assert sorted(threads.recv(min_slots=2).slots) == [1, 4]
    assert threads.in_flight == 1
    Counter.is_let_go.set()
    assert threads.recv().observations.tolist() == [[3, 103, 1]]


def test_those_who_are_done_do_not_wait_for_another_pool(threads):
    threads.send([WAITS, WAITS, 0, 0, 0])
    for _ in range(3):
        assert sorted(threads.recv(min_slots=3).slots) == [2, 3, 4]
        threads.send([0, 0, 0], [2, 3, 4])
        assert threads.in_flight == 5
    Counter.is_let_go.set()
    assert sorted(threads.recv().slots) == [0, 1, 2, 3, 4]


# Timeouts


@pytest.mark.parametrize("how", ["step", "recv"])
def test_after_a_timeout_everything_can_still_be_received(how, threads):
    threads.begin_step([0, 0, 0, 0, WAITS]) if how == "step" else threads.send([0] * 4 + [WAITS])
    receive = threads.end_step if how == "step" else threads.recv
    for _ in range(2):
        begun = time.monotonic()
        with pytest.raises(ReceiveTimeoutError):
            receive(timeout=0.05)
        assert time.monotonic() - begun < 10.0
        assert threads.in_flight == 5
    Counter.is_let_go.set()
    results = receive(timeout=10.0)
    observations = results[0] if how == "step" else results.observations
    assert observations[:, 2].tolist() == [1] * 5


# Failures


@pytest.mark.parametrize("slot", range(6))
def test_after_a_step_in_which_a_slot_failed_the_next_one_works(slot, inline):
    actions = [0] * 6
    actions[slot] = FAILS
    with pytest.raises(ArithmeticError, match="as asked") as caught:
        inline.step(actions)
    start = {0: 0, 1: 3, 2: 4}[np.searchsorted([3, 4], slot, side="right")]
    notes = " ".join(caught.value.__notes__)
    assert f"slot {slot - start} of" in notes
    assert f"its slot 0 is slot {start} of 6 in all" in notes
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


@pytest.mark.parametrize("how", ["step", "send"])
def test_a_wrong_action_of_the_last_pool_reaches_none(how, inline):
    with pytest.raises(InvalidActionError):
        getattr(inline, how)([0, 0, 0, 0, 0, 10])
    assert inline.in_flight == 0
    assert inline.latest()[:, 2].tolist() == [0] * 6


def test_what_a_call_has_failed_of_is_raised(inline):
    with pytest.raises(LookupError, match="nothing there"):
        inline.call("fails")
    assert inline.call("fails", slots=[0, 5]) == [None, None]


# Interrupts


class Interrupted:
    """A pool during one of whose next calls Ctrl-C comes."""

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
@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("how", ["send", "reset"])
def test_after_an_interrupt_only_what_a_pool_has_taken_is_in_flight(how, place, after, threads):
    taken = list(range([0, 2, 5][place + after]))
    with Interrupted(threads.pools[place], how, after=after):
        threads.send([0] * 5) if how == "send" else threads.reset()
    assert threads.in_flight == len(taken) == sum(pool.in_flight for pool in threads.pools)
    if taken:
        assert sorted(threads.recv().slots) == taken
    assert threads.step([0] * 5)[0].shape == (5, 3)
    threads.reset()
    assert threads.recv().observations[:, 2].tolist() == [0] * 5


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("place", [0, 1])
def test_after_an_interrupt_in_the_middle_of_a_step_the_next_one_works(place, after, threads):
    with Interrupted(threads.pools[place], "begin_step", after=after):
        threads.step([0] * 5)
    if threads.in_flight:
        threads.recv()
    assert sum(pool.in_flight for pool in threads.pools) == 0
    assert threads.step([0] * 5)[0].shape == (5, 3)


# Beginnings and ends


def test_pools_of_other_spaces_or_modes_are_refused():
    one = counters(0, 1)
    probes = InlinePool([ProbeEnv])
    same_step = counters(0, 1, autoreset_mode=AutoresetMode.SAME_STEP)
    with pytest.raises(SpaceMismatchError, match="single_observation of part 1"):
        JoinedPool([one, probes])
    with pytest.raises(SpaceMismatchError, match="part 2 is reset in"):
        JoinedPool([one, one, same_step])
    for pool in (one, probes, same_step):
        pool.close()


@pytest.mark.parametrize("how", ["step", "send"])
def test_what_is_in_flight_is_not_sent_again(how, threads):
    threads.send([WAITS], [3])
    with pytest.raises(AlreadyPendingCallError, match="slot 3 is in flight"):
        getattr(threads, how)([0] * 5)
    assert threads.in_flight == 1
    Counter.is_let_go.set()
    threads.drop()
    assert threads.in_flight == 0
    assert threads.step([0] * 5)[0][3, 2] == 2


def test_all_pools_are_closed_though_one_fails_to():
    pools = [counters(0, 1), counters(1, 1), counters(2, 1)]
    pool = JoinedPool(pools)
    with Interrupted(pools[1], "close", after=True):
        pool.close()
    for each in pools:
        with pytest.raises(ClosedEnvironmentError):
            each.latest([0])
