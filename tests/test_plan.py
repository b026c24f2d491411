"""The choice of the backend "auto", and options of ``shoal.make``."""

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
    """Has a given step time, and counts its instances."""

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
    ("slots", "cost", "cores", "backend", "workers", "caller_slots"),
    [
        (1, seconds(1.0), 8, "inline", 0, 1),
        (8, seconds(1e-6), 8, "inline", 0, 8),
        (8, seconds(1e-3), 1, "inline", 0, 8),
        (8, seconds(1e-3), 2, "process", 1, 4),
        (8, seconds(1e-3), 4, "process", 3, 2),
        (3, seconds(1e-3), 16, "process", 2, 1),
        (128, seconds(10e-6), 2, "process", 1, 64),
        (8, seconds(1e-3, infos=1e-3), 2, "inline", 0, 8),  # sending infos is too slow
        (8, seconds(1e-3, busy=1e-5), 2, "process", 8, 0),
        (100, seconds(1e-2, busy=1e-6), 2, "process", 32, 0),
        (8, seconds(1e-3, busy=1e-5), 1, "process", 8, 0),
    ],
)
def test_choice_of_plans(slots, cost, cores, backend, workers, caller_slots):
    plan = choose_plan(slots, cost, cores=cores)
    assert (plan.backend, plan.workers, plan.caller_slots) == (backend, workers, caller_slots)
    assert plan.step_seconds == cost.step
    assert plan.expected_rate > 0


def test_plan_rounds_the_rate():
    plan = Plan("inline", 2, 0, 2, "a single core", 6.6818e-3, 298.7)
    assert str(plan).endswith("(6.68 ms a step, expect about 300 steps/s)")


def test_measure():
    cost = measure(partial(Counted, busy=2e-3))
    assert 1.9e-3 < cost.step < 6e-3
    assert cost.busy > 0.5 * cost.step
    cost = measure(partial(Counted, waits=5e-3))
    assert cost.busy < 0.5 * cost.step
    assert cost.nbytes > 8


def test_fast_environments_stay_inline():
    Counted.made = 0
    with shoal.make(Counted, num_envs=6) as envs:
        assert envs.plan.backend == "inline"
        assert Counted.made == 7
        assert "too short to share" in str(envs.plan)
        assert len(envs.envs) == 6


def test_slow_environments_are_shared():
    Counted.made = 0
    with shoal.make(partial(Counted, busy=2e-3), num_envs=6) as envs:
        assert envs.plan.backend == "process"
        assert envs.plan.caller_slots == Counted.made - 1  # workers make the others
        assert "steps/s" in str(envs.plan)
        envs.reset(seed=1)
        envs.step([0] * 6)


def test_waiting_environments_are_shared():
    with shoal.make(partial(Counted, waits=0.02), num_envs=6) as envs:
        assert envs.plan.caller_slots == 0
        envs.reset(seed=1)
        start = time.monotonic()
        envs.step([0] * 6)
        assert time.monotonic() - start < 0.1


def test_unpicklable_factories_stay_inline():
    lock = threading.Lock()

    def factory():
        return Counted(busy=2e-3 + 0 * lock.locked())

    with shoal.make(factory, num_envs=4) as envs:
        assert envs.plan.backend == "inline"
        assert "the variable 'lock'" in str(envs.plan)


def test_errors_while_measuring_are_raised_by_step():
    class Failing(Counted):
        def step(self, action):
            raise OSError("no such device")

    with shoal.make(Failing, num_envs=3) as envs:
        assert "no such device" in str(envs.plan)
        envs.reset()
        with pytest.raises(OSError, match="no such device"):
            envs.step([0, 0, 0])


def test_backends_have_equal_trajectories():
    trajectories = []
    for backend in ("auto", "inline", "thread", "process"):
        with shoal.make(partial(Counted, busy=1e-3), num_envs=4, backend=backend) as envs:
            steps = [envs.reset(seed=3), *(envs.step([0] * 4) for _ in range(5))]
            trajectories.append(steps)
    for other in trajectories[1:]:
        for got, expected in zip(other, trajectories[0], strict=True):
            assert_identical(got, expected)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"backend": "gpu"}, "backend must be one of"),
        ({"backend": "inline", "workers": 2}, "there are no workers"),
        ({"backend": "inline", "on_crash": "restart"}, "on_crash requires backend='process'"),
        ({"backend": "thread", "step_timeout": 1.0}, "step_timeout requires backend='process'"),
        ({"start": "vfork"}, "start must be one of"),
        ({"on_crash": "ignore"}, "on_crash must be one of"),
        ({"step_timeout": 0}, "step_timeout must be a positive number"),
        ({"workers": 0}, "workers must be a positive integer"),
        ({"batch_size": 1.5}, "batch_size must be a positive integer"),
    ],
)
def test_invalid_options(options, message):
    Counted.made = 0
    with pytest.raises(ValueError, match=message):
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
def test_caller_steps_slots(options, shared):
    with shoal.make(Counted, num_envs=4, **options) as envs:
        assert envs.plan.backend == options.get("backend", "process")
        assert (envs.plan.caller_slots > 0) == shared
        assert envs.plan.reason == "requested"
        envs.reset(seed=1)
        envs.step([0] * 4)
