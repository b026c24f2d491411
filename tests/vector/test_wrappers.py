"""Gymnasium's vector wrappers give the same results on Shoal's and Gymnasium's vectors."""

from functools import partial

import gymnasium
import gymnasium.wrappers.vector as vector_wrappers
import numpy as np
import pytest
import torch
from gymnasium import spaces

from shoal.testing import assert_identical
from shoal.vector import SyncVectorEnv

# Arguments besides the environment.
ARGUMENTS = {
    "ArrayConversion": {"env_xp": np, "target_xp": np},
    "ClipReward": {"min_reward": -1, "max_reward": 0},
    "DtypeObservation": {"dtype": np.float64},
    "FilterObservation": {"filter_keys": ["a"]},
    "RecordVideo": {"episode_trigger": lambda episode: episode == 0},
    "RescaleAction": {"min_action": -0.5, "max_action": 0.5},
    "RescaleObservation": {"min_obs": -1, "max_obs": 1},
    "ReshapeObservation": {"shape": (3, 1)},
    "ResizeObservation": {"shape": (4, 4)},
    "TransformAction": {"func": lambda actions: actions / 2},
    "TransformObservation": {"func": lambda observations: observations / 9},
    "TransformReward": {"func": lambda rewards: rewards + 1},
    "VectorizeTransformAction": {
        "wrapper": gymnasium.wrappers.TransformAction,
        "func": lambda action: action / 2,
        "action_space": spaces.Box(-2, 2, (1,)),
    },
    "VectorizeTransformObservation": {
        "wrapper": gymnasium.wrappers.TransformObservation,
        "func": lambda observation: observation / 9,
        "observation_space": spaces.Box(-1, 1, (3,), np.float64),
    },
    "VectorizeTransformReward": {
        "wrapper": gymnasium.wrappers.TransformReward,
        "func": lambda reward: reward + 1,
    },
}
# Wrappers for vectors of JAX arrays.
NOT_FOR_NUMPY = {"JaxToNumpy", "JaxToTorch"}


class Camera(gymnasium.Env):
    observation_space = spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.integers(0, 256, (8, 8, 3), np.uint8), {}

    def step(self, action):
        return self.np_random.integers(0, 256, (8, 8, 3), np.uint8), 1.0, False, False, {}


class Keyed(gymnasium.Env):
    observation_space = spaces.Dict({"a": spaces.Discrete(9), "b": spaces.Discrete(9)})
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        return {"a": 1, "b": 2}, {}

    def step(self, action):
        return {"a": 3, "b": 4}, 1.0, False, False, {}


def factory_for(name):
    if name in ("GrayscaleObservation", "ResizeObservation"):
        return Camera
    if name == "FilterObservation":
        return Keyed
    modes = {"HumanRendering": "rgb_array", "RecordVideo": "rgb_array"}
    return partial(gymnasium.make, "Pendulum-v1", max_episode_steps=20, render_mode=modes.get(name))


@pytest.mark.parametrize("name", sorted(set(vector_wrappers.__all__) - NOT_FOR_NUMPY))
def test_wrapper(name, tmp_path, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    arguments = ARGUMENTS.get(name, {})
    if name == "RecordVideo":
        arguments = {**arguments, "video_folder": str(tmp_path)}
    try:
        wrapper = getattr(vector_wrappers, name)
    except gymnasium.error.DependencyNotInstalled as error:
        pytest.skip(str(error))
    runs = []
    for vector in (SyncVectorEnv, gymnasium.vector.SyncVectorEnv):
        envs = wrapper(vector([factory_for(name)] * 3), **arguments)
        envs.action_space.seed(4)
        actions = [envs.action_space.sample() for _ in range(50)]
        if name == "NumpyToTorch":
            actions = [torch.as_tensor(action) for action in actions]
        results = [envs.reset(seed=4), *map(envs.step, actions)]
        runs.append([comparable(result) for result in results])
        envs.close()
    assert_identical(*runs)
    if name == "RecordVideo":
        assert list(tmp_path.glob("*.mp4"))


def comparable(result):
    """Return a result without episode times, with tensors converted to arrays."""
    *values, infos = result
    if isinstance(infos, dict) and "episode" in infos:
        infos["episode"].pop("t")
    return [value.numpy() if isinstance(value, torch.Tensor) else value for value in values], infos
