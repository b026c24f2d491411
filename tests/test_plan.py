"""What auto chooses, and that it harms nobody."""

import threading
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal._plan import Plan, StepCost, choose_plan, measure
from shoal.testing import assert_identical


class Counted(gymnasium.Env):
    """Takes as long as it is told, and counts how many of it were made."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)
    made = 0

    def __init__(self, busy=0.0, waits=0.0):
        type(self).made += 1
        self._busy, self._waits = busy, waits

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.random(2).astype(np.float32), {}

    def step(self, action):
        end = time.perf_counter() + self._busy
        while time.perf_counter() < end:
            pass
        if self._waits:
            time.sleep(self._waits)
        return self.np_random.random(2).astype(np.float32), 1.0, False, False, {}


def seconds(step, *, busy=None, infos=0.0, nbytes=64):
    return StepCost(step, step if busy is None else busy, infos, nbytes)


@pytest.mark.parametrize(
    ("slots", "measured", "cores", "backend", "workers", "own"),
    [
        (1, seconds(1.0), 8, "inline", 0, 1),
        (8, seconds(1e-6), 8, "inline", 0, 8),
        (8, seconds(1e-3), 1, "inline", 0, 8),
        (8, seconds(1e-3), 2, "process", 1, 4),
        (8, seconds(1e-3), 4, "process", 3, 2),
        (3, seconds(1e-3), 16, "process", 2, 1),
        (128, seconds(10e-6), 2, "process", 1, 64),
        (8, seconds(1e-3, infos=1e-3), 2, "inline", 0, 8),  # they would cost more to send
        (8, seconds(1e-3, busy=1e-5), 2, "process", 8, 0),
        (100, seconds(1e-2, busy=1e-6), 2, "process", 32, 0),
        (8, seconds(1e-3, busy=1e-5), 1, "process", 8, 0),
    ],
)
def test_choices(slots, measured, cores, backend, workers, own):
    plan = choose_plan(slots, measured, cores=cores)
    assert (plan.backend, plan.workers, plan.caller_slots) == (backend, workers, own)
    assert plan.step_seconds == measured.step
    assert plan.expected_rate > 0


def test_a_plan_tells_no_more_digits_than_it_knows():
    plan = Plan("inline", 2, 0, 2, "there is one core only", 6.6818e-3, 298.7)
    assert str(plan).endswith("(6.68 ms a step, expect about 300 steps/s)")


def test_measuring():
    measured = measure(partial(Counted, busy=2e-3))
    assert 1.9e-3 < measured.step < 6e-3
    assert measured.busy > 0.5 * measured.step
    measured = measure(partial(Counted, waits=5e-3))
    assert measured.busy < 0.5 * measured.step
    assert measured.nbytes > 8


def test_small_work_stays_inline_and_one_environment_is_made_twice():
    Counted.made = 0
    with shoal.make(Counted, num_envs=6) as envs:
        assert envs.plan.backend == "inline"
        assert Counted.made == 7
        assert "too short to share" in str(envs.plan)
        assert len(envs.envs) == 6


def test_large_work_is_shared():
    Counted.made = 0
    with shoal.make(partial(Counted, busy=2e-3), num_envs=6) as envs:
        assert envs.plan.backend == "process"
        assert envs.plan.caller_slots == Counted.made - 1  # the others are made in workers
        assert "steps/s" in str(envs.plan)
        envs.reset(seed=1)
        envs.step([0] * 6)


def test_waiting_is_shared_as_well():
    with shoal.make(partial(Counted, waits=0.02), num_envs=6) as envs:
        assert envs.plan.caller_slots == 0
        envs.reset(seed=1)
        begun = time.monotonic()
        envs.step([0] * 6)
        assert time.monotonic() - begun < 0.1


def test_factories_that_cannot_be_sent_stay_inline():
    lock = threading.Lock()

    def factory():
        return Counted(busy=2e-3 + 0 * lock.locked())

    with shoal.make(factory, num_envs=4) as envs:
        assert envs.plan.backend == "inline"
        assert "the variable 'lock'" in str(envs.plan)


def test_an_environment_that_cannot_be_timed_shows_its_error_where_it_belongs():
    class Failing(Counted):
        def step(self, action):
            raise OSError("no such device")

    with shoal.make(Failing, num_envs=3) as envs:
        assert "no such device" in str(envs.plan)
        envs.reset()
        with pytest.raises(OSError, match="no such device"):
            envs.step([0, 0, 0])


def test_planning_changes_no_trajectory():
    trajectories = []
    for backend in ("auto", "inline", "thread", "process"):
        with shoal.make(partial(Counted, busy=1e-3), num_envs=4, backend=backend) as envs:
            steps = [envs.reset(seed=3), *(envs.step([0] * 4) for _ in range(5))]
            trajectories.append(steps)
    for other in trajectories[1:]:
        for got, expected in zip(other, trajectories[0], strict=True):
            assert_identical(got, expected)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"backend": "gpu"}, "backend must be one of"),
        ({"backend": "inline", "workers": 2}, "there are no workers"),
        ({"backend": "inline", "on_crash": "restart"}, "on_crash goes with backend='process'"),
        ({"backend": "thread", "step_timeout": 1.0}, "step_timeout goes with backend='process'"),
        ({"start": "vfork"}, "start must be one of"),
        ({"on_crash": "ignore"}, "on_crash must be one of"),
        ({"step_timeout": 0}, "step_timeout must be a positive number"),
        ({"workers": 0}, "workers must be a positive integer"),
        ({"batch_size": 1.5}, "batch_size must be a positive integer"),
    ],
)
def test_options_that_make_no_sense(options, said):
    Counted.made = 0
    with pytest.raises(ValueError, match=said):
        shoal.make(Counted, num_envs=2, **options)
    assert Counted.made == 0


@pytest.mark.parametrize(
    ("options", "shared"),
    [
        ({"backend": "process"}, True),
        ({"backend": "process", "caller_works": False}, False),
        ({"workers": 1}, True),
        ({"on_crash": "restart"}, False),
        ({"step_timeout": 5.0}, False),
        ({"backend": "process", "batch_size": 2}, False),
        ({"backend": "thread", "workers": 1}, True),
    ],
)
def test_who_takes_part(options, shared):
    with shoal.make(Counted, num_envs=4, **options) as envs:
        assert envs.plan.backend == options.get("backend", "process")
        assert (envs.plan.caller_slots > 0) == shared
        assert envs.plan.reason == "asked for"
        envs.reset(seed=1)
        envs.step([0] * 4)
