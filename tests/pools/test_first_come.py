"""First come, first served: ``recv`` does not wait for slots that were not requested."""

import threading
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import NoAsyncCallError

import shoal
from shoal.errors import ReceiveTimeoutError
from shoal.pools import InlinePool, ProcessPool, ThreadPool


class Sleeper(gymnasium.Env):
    """Sleeps for its action in milliseconds, and observes how often it was stepped."""

    observation_space = spaces.Box(0, 1e9, (1,), np.float64)
    action_space = spaces.Discrete(2000)

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return np.zeros(1), {}

    def step(self, action):
        time.sleep(action / 1000)
        self.steps += 1
        return np.array([float(self.steps)]), float(action), False, False, {}


POOLS = [
    partial(ProcessPool, caller_works=False),
    partial(ThreadPool, caller_works=False),
    partial(ProcessPool, caller_works=False, doorbell="pipe"),
]


@pytest.fixture(params=POOLS, ids=["process", "thread", "pipe"])
def pool(request):
    pool = request.param([Sleeper] * 4, workers=2)
    pool.reset()
    pool.recv()
    yield pool
    pool.close(terminate=True)


def test_a_slow_slot_delays_only_itself(pool):
    pool.send([1500, 1, 1, 1])
    start = time.monotonic()
    for _ in range(5):
        fast = pool.recv(min_slots=3)
        assert sorted(fast.slots) == [1, 2, 3]
        pool.send([1, 1, 1], slots=fast.slots)
    assert time.monotonic() - start < 1.2
    last = pool.recv()
    assert set(last.slots) == {0, 1, 2, 3}
    assert last.observations[list(last.slots).index(0)] == 1.0


def test_environments_that_block_do_so_at_the_same_time():
    pool = ProcessPool([Sleeper] * 8, workers=2, caller_works=False)
    pool.reset()
    pool.recv()
    start = time.monotonic()
    pool.send([300] * 8)
    pool.recv()
    assert time.monotonic() - start < 0.9  # sequentially it would be 1.2
    pool.close()


class ThreadBoundEnv(Sleeper):
    """Requires to be called from the thread that created it."""

    def __init__(self):
        self._thread = threading.get_ident()

    def step(self, action):
        assert threading.get_ident() == self._thread
        return super().step(action)


def test_rounds_run_in_the_thread_that_created_the_environments():
    pool = ProcessPool([ThreadBoundEnv] * 4, workers=1, caller_works=False)
    pool.reset()
    pool.recv()
    for _ in range(5):
        pool.step([15] * 4)
    pool.close()
    pool = ProcessPool([ThreadBoundEnv] * 4, workers=1, caller_works=False, stand_ins=False)
    pool.reset()
    pool.recv()
    pool.send([15] * 4)
    pool.recv()
    pool.close()


def test_without_stand_ins_a_worker_steps_one_slot_at_a_time():
    pool = ProcessPool([Sleeper] * 3, workers=1, caller_works=False, stand_ins=False)
    pool.reset()
    pool.recv()
    start = time.monotonic()
    pool.send([100] * 3)
    pool.recv()
    assert time.monotonic() - start >= 0.3
    pool.close()


def test_after_a_timeout_nothing_is_lost(pool):
    pool.send([400, 1, 1, 1])
    start = time.monotonic()
    with pytest.raises(ReceiveTimeoutError, match="3 are done"):
        pool.recv(timeout=0.15)
    assert 0.1 < time.monotonic() - start < 0.35
    assert pool.in_flight == 4
    batch = pool.recv()
    assert batch.slots.tolist() == [0, 1, 2, 3]
    assert batch.rewards.tolist() == [400, 1, 1, 1]
    pool.send([1, 1, 1, 1])
    assert pool.recv().observations.ravel().tolist() == [2, 2, 2, 2]


def test_several_batches_can_be_in_flight(pool):
    pool.send([200, 200], slots=[0, 1])
    pool.send([1, 1], slots=[2, 3])
    early = pool.recv(min_slots=2)
    assert sorted(early.slots) == [2, 3]
    pool.send([5, 6], slots=early.slots)
    assert sorted(pool.recv(min_slots=2).slots) == [2, 3]
    assert sorted(pool.recv().slots) == [0, 1]


def test_double_buffering_by_groups(pool):
    one, other = [0, 2], [3, 1]
    pool.send([10, 10], slots=one)
    for turn in range(1, 6):
        pool.send([1, 1], slots=other)
        batch = pool.recv(slots=one)
        assert batch.slots.tolist() == one
        assert batch.observations.ravel().tolist() == [turn, turn]
        pool.send([10, 10], slots=one)
        assert pool.recv(slots=other).slots.tolist() == other
    with pytest.raises(NoAsyncCallError, match="slot 1 is not in flight"):
        pool.recv(slots=[1])
    pool.recv()


@pytest.mark.parametrize("make", [*POOLS, InlinePool])
def test_min_slots_and_max_slots(make):
    pool = make([Sleeper] * 4)
    pool.reset()
    pool.recv()
    pool.send([1, 1, 1, 1])
    time.sleep(0.1)
    assert len(pool.recv(min_slots=2, max_slots=3).slots) in (2, 3)
    pool.recv()
    pool.close()


@pytest.mark.parametrize("backend", ["inline", "thread", "process"])
def test_a_batch_size(backend):
    envs = shoal.make(Sleeper, num_envs=5, backend=backend, batch_size=2)
    envs.reset(seed=1)
    envs.send([1] * 5)
    sizes = [len(envs.recv().slots) for _ in range(3)]
    assert sizes == [2, 2, 1]
    envs.close()


def test_the_caller_drives_its_share_only_as_far_as_needed():
    pool = ProcessPool([Sleeper] * 4, workers=1)  # the caller has slots 2 and 3
    pool.reset()
    pool.recv()
    pool.send([1, 1, 300, 300])
    time.sleep(0.2)
    start = time.monotonic()
    assert sorted(pool.recv(min_slots=2).slots) == [0, 1]
    assert time.monotonic() - start < 0.2
    assert pool.recv().slots.tolist() == [2, 3]
    pool.close()
