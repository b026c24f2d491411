"""Concurrent and reentrant calls are refused."""

import threading

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError

import shoal
from shoal.vector import SyncVectorEnv


class Hook(gymnasium.Env):
    """Calls a function during its step."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self):
        self.hook = lambda: None

    def reset(self, *, seed=None, options=None):
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.action = action
        self.hook()
        return np.ones(2, np.float32), 1.0, False, False, {}


@pytest.fixture
def envs():
    vector = SyncVectorEnv([Hook] * 3)
    vector.reset()
    yield vector
    vector.close()


def test_step_within_a_step_is_refused(envs):
    envs.envs[1].hook = lambda: envs.step([0, 0, 0])
    with pytest.raises(RuntimeError, match="already being stepped"):
        envs.step([0, 0, 0])
    envs.envs[1].hook = lambda: None
    assert envs.step([0, 0, 0])[1].tolist() == [1.0, 1.0, 1.0]


def test_calls_of_a_second_thread_are_refused(envs):
    inside, leave = threading.Event(), threading.Event()
    envs.envs[0].hook = lambda: (inside.set(), leave.wait(10))
    thread = threading.Thread(target=envs.step, args=([1, 1, 1],))
    thread.start()
    assert inside.wait(10)
    try:
        for use in (lambda: envs.step([0, 0, 0]), lambda: envs.send([0], slots=[2])):
            with pytest.raises(RuntimeError, match="already being stepped"):
                use()
    finally:
        leave.set()
        thread.join()
    assert [env.action for env in envs.envs] == [1, 1, 1]
    envs.envs[0].hook = lambda: None
    envs.step([0, 0, 0])


def test_close_within_a_step(envs):
    envs.envs[0].hook = envs.close
    envs.step([0, 0, 0])
    with pytest.raises(ClosedEnvironmentError):
        envs.step([0, 0, 0])


def test_clearing_envs_within_a_step_is_an_error(envs):
    envs.envs[0].hook = envs.envs.clear
    with pytest.raises(IndexError, match="slot 1"):
        envs.step([0, 0, 0])


def test_replaced_environments_and_methods_are_used(envs):
    class Other(Hook):
        def step(self, action):
            return np.full(2, 0.5, np.float32), 7.0, False, False, {}

    envs.envs[1] = Other()
    envs.envs[2].step = lambda action: (np.zeros(2, np.float32), 9.0, False, False, {})
    assert envs.step([0, 0, 0])[1].tolist() == [1.0, 7.0, 9.0]


def test_envs_can_be_replaced(envs):
    class Seven(gymnasium.Wrapper):
        def step(self, action):
            observation, _, *rest = self.env.step(action)
            return observation, 7.0, *rest

    envs.envs = [Seven(env) for env in envs.envs]
    assert envs.step([0, 0, 0])[1].tolist() == [7.0, 7.0, 7.0]
    with pytest.raises(ValueError, match="got 1 environments for 3 slots"):
        envs.envs = envs.envs[:1]


def test_use_after_close():
    envs = shoal.make(Hook, num_envs=2)
    envs.reset()
    envs.close()
    for use in (envs.reset, lambda: envs.step([0, 0]), envs.render, lambda: envs.call("hook")):
        with pytest.raises(ClosedEnvironmentError):
            use()
    envs.close()
    assert envs.closed
