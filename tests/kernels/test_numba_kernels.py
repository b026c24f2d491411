"""User-written kernels in Python, compiled by numba."""

from pathlib import Path

import cloudpickle
import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

import shoal
from shoal.errors import KernelDefinitionError, KernelError
from shoal.kernels import random_below, random_double, random_uniform
from shoal.pools import KernelPool
from shoal.testing import PoolConformance, assert_identical


@shoal.kernels.numba_kernel(
    observation_space=spaces.Tuple((spaces.Box(-9, 9, (2,), np.float64), spaces.Discrete(50))),
    action_space=spaces.Dict(push=spaces.Box(-1, 1, (2,), np.float64), gear=spaces.Discrete(3)),
    state=[("place", np.float64, (2,)), ("steps", np.int64)],
    parameters={"scale": 1.0},
    options={"spread": 1.0},
    infos={"dice": np.int64, "both": (np.float32, (2,))},
    max_episode_steps=30,
)
class Wander:
    """A random walk on a plane, with several leaves in each space."""

    @staticmethod
    def reset(state, random, parameters, options, observation, info):
        for axis in range(2):
            state.place[axis] = random_uniform(random, -options.spread, options.spread)
            observation[0][axis] = state.place[axis]
            info.both[axis] = state.place[axis]
        state.steps = 0
        observation[1][0] = 0
        info.dice[0] = random_below(random, 6)

    @staticmethod
    def step(state, random, parameters, action, observation, info):
        for axis in range(2):
            state.place[axis] += parameters.scale * action.push[axis] * action.gear + random_double(
                random
            )
            observation[0][axis] = state.place[axis]
            info.both[axis] = state.place[axis]
        state.steps += 1
        observation[1][0] = state.steps
        info.dice[0] = random_below(random, 6)
        distance = abs(state.place[0]) + abs(state.place[1])
        return -distance, distance > 20.0, state.steps == 29 and action.gear == 0

    @staticmethod
    def render(state):
        image = np.zeros((8, 8, 3), np.uint8)
        image[int(state["steps"]) % 8] = 255
        return image


class WanderInPython(gymnasium.Env):
    """The same environment in Python."""

    observation_space = Wander.observation_space
    action_space = Wander.action_space

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1.0, 1.0, 2)
        self.steps = 0
        return self._observe()

    def step(self, action):
        for axis in range(2):
            self.place[axis] += (
                1.0 * action["push"][axis] * action["gear"] + self.np_random.random()
            )
        self.steps += 1
        observation, info = self._observe()
        distance = np.abs(self.place).sum()
        cut = self.steps == 29 and action["gear"] == 0
        return observation, -distance, distance > 20.0, cut, info

    def _observe(self):
        dice = int(self.np_random.integers(6))
        return (self.place.copy(), self.steps), {
            "dice": dice,
            "both": self.place.astype(np.float32),
        }


@pytest.mark.parametrize("mode", ["NextStep", "SameStep"])
def test_numba_kernel_equals_the_same_environment_in_python(mode):
    native = shoal.make(Wander, 5, autoreset_mode=mode)
    python = shoal.make(
        lambda: gymnasium.wrappers.TimeLimit(WanderInPython(), 30),
        5,
        backend="inline",
        autoreset_mode=mode,
    )
    assert_identical(native.reset(seed=6), python.reset(seed=6))
    for _ in range(100):
        actions = python.action_space.sample()
        assert_identical(native.step(actions), python.step(actions))


class TestNumbaKernelPool(PoolConformance):
    """The conformance tests with a numba kernel."""

    def make_pool(self, num_envs, **options):
        return KernelPool(Wander, num_envs, **options)


def test_numba_kernel_has_images_parameters_and_fields():
    with shoal.make(Wander, 3, scale=0.0, render_mode="rgb_array") as envs:
        envs.reset(seed=0, options={"spread": 0.0})
        assert not envs.state["place"].any()
        assert envs.render_tiled(columns=3).shape == (8, 24, 3)
        envs.state["steps"] = [1, 2, 3]
        images = envs.render()
        assert [int(image[:, 0, 0].argmax()) for image in images] == [1, 2, 3]
        assert envs.get_attr("scale") == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"state": np.float64}, "state must be a record dtype"),
        ({"observation_space": spaces.Text(3)}, "have no fixed shape"),
        ({"infos": {"wrong": np.complex64}}, "no arrays of dtype complex64|iinfo|Invalid"),
        ({"infos": {"more": np.float64}}, r"defined as reset\(.*called as reset\(.*, info\)"),
        ({"max_episode_steps": 1.5}, "max_episode_steps must be a positive integer"),
        ({"options": {"reset_mask": 1}}, "the option name 'reset_mask' is reserved"),
        ({"parameters": {"num_envs": 1}}, "the parameter name 'num_envs' is reserved"),
    ],
)
def test_rejects_invalid_kernel_definitions(changed, message):
    arguments = {
        "observation_space": spaces.Box(-1, 1, (1,)),
        "action_space": spaces.Discrete(2),
        "state": [("x", np.float64)],
    }

    class Nothing:
        @staticmethod
        def reset(state, random, parameters, options, observation):
            observation[0] = 0.0

        @staticmethod
        def step(state, random, parameters, action, observation):
            observation[0] = 0.0
            return 0.0, False, False

    with pytest.raises((KernelDefinitionError, ValueError), match=message):
        shoal.kernels.numba_kernel(**{**arguments, **changed})(Nothing)
    del Nothing.step
    with pytest.raises(KernelDefinitionError, match="kernel Nothing needs a function 'step'"):
        shoal.kernels.numba_kernel(**arguments)(Nothing)


@shoal.kernels.numba_kernel(
    observation_space=spaces.Box(-1, 1, (1,)),
    action_space=spaces.Discrete(4),
    state=[("count", np.int64)],
)
class Fragile:
    """Fails on action 2, and divides by zero on action 3."""

    @staticmethod
    def reset(state, random, parameters, options, observation):
        state.count = 0
        observation[0] = random_double(random)

    @staticmethod
    def step(state, random, parameters, action, observation):
        observation[0] = 0.0
        state.count += 1
        if action == 2:
            raise ValueError("action 2")
        if action == 3:
            observation[0] = 1.0 / (state.count - state.count)
        return 1.0, False, False


def test_exception_in_numba_kernel_is_a_failure_of_its_slot():
    with shoal.make(Fragile, 1000, workers=2) as envs:
        envs.reset(seed=0)
        actions = np.zeros(1000, np.int64)
        actions[[437, 999]] = 2
        with pytest.raises(KernelError, match="slot 437 of 1000, in its step: the function"):
            envs.step(actions)
        assert (envs.state["count"] == 1).all()
        actions[:] = 3
        assert np.isinf(envs.step(actions)[0]).sum() == 998  # as in C, not an error


def test_reports_code_that_numba_cannot_compile():
    class Uncompilable:
        @staticmethod
        def reset(state, random, parameters, options, observation):
            observation[0] = state.missing

        @staticmethod
        def step(state, random, parameters, action, observation):
            return 0.0, False, False

    with pytest.raises(KernelDefinitionError, match=r"numba cannot compile 'reset'.*missing"):
        shoal.kernels.numba_kernel(
            observation_space=spaces.Box(-1, 1, (1,)),
            action_space=spaces.Discrete(2),
            state=[("x", np.float64)],
        )(Uncompilable)


def test_numba_kernel_can_be_pickled():
    copied = cloudpickle.loads(cloudpickle.dumps(Fragile))
    one, other = shoal.make(Fragile, 3), shoal.make(copied, 3)
    assert_identical(one.reset(seed=3), other.reset(seed=3))


def test_example_is_short():
    example = Path(__file__).parents[2] / "examples" / "kernel_in_numba.py"
    assert len(example.read_text().splitlines()) < 60
