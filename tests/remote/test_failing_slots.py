"""The vector remains usable after slots have failed or could not be cancelled."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import StepResultError
from shoal.pools import InlinePool, ThreadPool
from shoal.remote import Hosted
from tests.remote.peers import LONG, Cell, WakeableCell, wait_until
from tests.remote.serving import connected, served

FAIL = 7
"""The action that makes a slot fail."""


class FailingCell(Cell):
    """Returns an invalid feedback for failing slots."""

    def step_slots(self, slots, actions):
        feedbacks = super().step_slots(slots, [0] * len(slots))
        answers = zip(actions, feedbacks, strict=True)
        return ["nonsense" if action == FAIL else each for action, each in answers]


class JammedCell(Cell):
    """Raises for the whole call."""

    def step_slots(self, slots, actions):
        if FAIL in actions:
            raise StepResultError("it is jammed")
        return super().step_slots(slots, actions)


class Failing(gymnasium.Env):
    """Observes 0 and the number of steps of its episode."""

    observation_space = spaces.Box(-1, 1e6, (2,), np.float64)
    action_space = spaces.Discrete(10)

    def reset(self, *, seed=None, options=None):
        self._steps = 0
        return np.zeros(2), {}

    def step(self, action):
        if action == FAIL:
            raise StepResultError("the test makes this slot fail")
        self._steps += 1
        return np.array([0.0, self._steps]), 1.0, False, False, {}


HOSTED = {
    "device": FailingCell,
    "jammed device": JammedCell,
    "exclusive device": Hosted(FailingCell, exclusive=True),
    "plain": lambda: InlinePool([Failing] * 3),
    "threads": lambda: ThreadPool([Failing] * 3, workers=3, caller_works=False),
    "exclusive threads": Hosted(lambda: ThreadPool([Failing] * 3, workers=3), exclusive=True),
}
FAILING = {"the first": [0], "the last": [-1], "some": [0, -1], "all": slice(None)}


@pytest.fixture(params=[1, 2], ids=["one server", "two servers"])
def vector_of(request):
    """Make a vector over one or two servers."""
    made = []

    def vector_of(hosted, **options):
        servers = [served(hosted) for _ in range(request.param)]
        urls = [each.__enter__() for each in servers]
        made.extend(servers)
        envs = shoal.connect(urls if len(urls) > 1 else urls[0], timeout=20.0, **options)
        made.append(envs)
        return envs

    yield vector_of
    for each in reversed(made):
        each.__exit__(None, None, None)


def actions(envs, failing=()):
    chosen = np.zeros(envs.num_envs, np.int64)
    chosen[failing if failing else slice(0)] = FAIL
    return chosen


@pytest.mark.parametrize("which", FAILING)
@pytest.mark.parametrize("hosted", HOSTED)
def test_step_after_failed_slots(hosted, which, vector_of):
    envs = vector_of(HOSTED[hosted])
    envs.reset()
    envs.step(actions(envs))
    for _ in range(2):
        with pytest.raises(StepResultError):
            envs.step(actions(envs, FAILING[which]))
        assert envs.pool.in_flight == 0
        assert envs.step(actions(envs))[0].shape == (envs.num_envs, 2)
    assert envs.step(actions(envs))[0][:, 1].min() > 2


@pytest.mark.parametrize("hosted", HOSTED)
def test_reset_after_failed_slots(hosted, vector_of):
    envs = vector_of(HOSTED[hosted])
    envs.reset()
    with pytest.raises(StepResultError):
        envs.step(actions(envs, [0]))
    assert not envs.reset()[0][:, 1].any()
    assert envs.step(actions(envs))[0][:, 1].tolist() == [1] * envs.num_envs


@pytest.mark.parametrize("on_lost", ["raise", "resume"])
def test_other_slots_are_received_after_a_failure(on_lost, vector_of):
    envs = vector_of(FailingCell, on_lost=on_lost)
    envs.reset()
    envs.send(actions(envs, [1]))
    with pytest.raises(StepResultError, match=r"slot 1 of 3"):
        envs.recv()
    rest = [slot for slot in range(envs.num_envs) if slot != 1]
    assert sorted(envs.recv().slots) == rest
    assert envs.step(actions(envs))[0].shape == (envs.num_envs, 2)


# Devices that cannot be cancelled


class FailingCancel(WakeableCell):
    def cancel(self, slots):
        raise RuntimeError("cancel has failed")


def test_failing_cancel_raises():
    cell = FailingCancel()
    envs = connected(lambda: cell, timeout=20.0)
    envs.reset()
    envs.send([LONG] * 3)
    assert cell.running.wait(10.0)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="cancel has failed"):
            envs.cancel()
    assert envs.pool.in_flight == 3
    cell.woken.set()
    batch = envs.recv()
    assert batch.observations[:, 1].tolist() == [1, 1, 1]
    assert "status" not in batch.infos
    envs.close()


def test_missed_deadline_with_failing_cancel():
    cell = FailingCancel()
    envs = connected(lambda: cell, timeout=20.0)
    envs.reset()
    infos = envs.step([LONG] * 3, deadlines=0.1)[4]
    assert infos["status"].tolist() == ["timeout"] * 3
    assert infos["not cancelled"].tolist() == ["RuntimeError: cancel has failed"] * 3
    cell.woken.set()
    assert wait_until(lambda: cell.total() == 3)
    observations, _, _, _, infos = envs.step([0, 0, 0])
    assert observations[:, 1].tolist() == [2, 2, 2]
    assert infos["_late"].tolist() == [True] * 3
    assert "not cancelled" not in infos
    envs.close()
