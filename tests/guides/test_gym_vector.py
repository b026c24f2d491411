"""The samples of the guide to gym.vector, in OpenAI Gym's and in Gymnasium's interface."""

import gymnasium
import numpy as np
import pytest
from scipy.special import softmax

import shoal
import shoal.legacy as gym
from shoal.legacy.spaces.utils import flatdim


class TestAsWritten:
    """Only the import line differs from the guide."""

    def test_creating(self):
        envs = gym.vector.AsyncVectorEnv([
            lambda: gym.make("CartPole-v1"),
            lambda: gym.make("CartPole-v1"),
            lambda: gym.make("CartPole-v1")
        ])  # fmt: skip
        assert envs.num_envs == 3
        envs.close()
        envs = gym.vector.make("CartPole-v1", num_envs=3)
        assert envs.num_envs == 3
        envs.close()

    def test_different_parameters(self):
        env = gym.vector.AsyncVectorEnv([
            lambda: gym.make("Pendulum-v0", g=9.81),
            lambda: gym.make("Pendulum-v0", g=1.62)
        ])  # fmt: skip
        assert env.get_attr("g") == (9.81, 1.62)
        assert env.reset().shape == (2, 3)
        env.close()

    def test_start_method(self):
        envs = gym.vector.make("CartPole-v1", num_envs=3, context="spawn")
        assert envs.reset().shape == (3, 4)
        envs.close()

    def test_stepping(self):
        envs = gym.vector.make("CartPole-v1", num_envs=3)
        assert envs.reset().shape == (3, 4)
        actions = np.array([1, 0, 1])
        observations, rewards, dones, infos = envs.step(actions)
        assert observations.shape == (3, 4)
        assert observations.dtype == np.float32
        assert rewards.tolist() == [1.0, 1.0, 1.0]
        assert dones.tolist() == [False, False, False]
        assert infos == ({}, {}, {})
        envs.close()

    def test_nested_spaces(self):
        class DictEnv(gym.Env):
            observation_space = gym.spaces.Dict({
                "position": gym.spaces.Box(-1., 1., (3,), np.float32),
                "velocity": gym.spaces.Box(-1., 1., (2,), np.float32)
            })  # fmt: skip
            action_space = gym.spaces.Dict({
                "fire": gym.spaces.Discrete(2),
                "jump": gym.spaces.Discrete(2),
                "acceleration": gym.spaces.Box(-1., 1., (2,), np.float32)
            })  # fmt: skip

            def reset(self):
                return self.observation_space.sample()

            def step(self, action):
                observation = self.observation_space.sample()
                return (observation, 0., False, {})  # fmt: skip

        envs = gym.vector.AsyncVectorEnv([lambda: DictEnv()] * 3)
        assert envs.observation_space["position"].shape == (3, 3)
        assert envs.observation_space["velocity"].shape == (3, 2)
        assert envs.action_space["fire"] == gym.spaces.MultiDiscrete([2, 2, 2])
        assert envs.action_space["acceleration"].shape == (3, 2)

        envs.reset()
        actions = {
            "fire": np.array([1, 1, 0]),
            "jump": np.array([0, 1, 0]),
            "acceleration": np.random.uniform(-1., 1., size=(3, 2))
        }  # fmt: skip
        observations, rewards, dones, infos = envs.step(actions)
        assert observations in envs.observation_space
        envs.close()

    def test_automatic_resets(self):
        envs = gym.vector.make("FrozenLake-v1", num_envs=3, is_slippery=False)
        assert envs.reset().tolist() == [0, 0, 0]
        observations, rewards, dones, infos = envs.step(np.array([1, 2, 2]))
        observations, rewards, dones, infos = envs.step(np.array([1, 2, 1]))
        assert dones.tolist() == [False, False, True]
        assert observations.tolist() == [8, 2, 0]
        envs.close()

    def test_spaces(self):
        envs = gym.vector.make("CartPole-v1", num_envs=3)
        assert envs.observation_space.shape == (3, 4)
        assert envs.action_space == gym.spaces.MultiDiscrete([2, 2, 2])
        assert envs.single_observation_space.shape == (4,)
        assert envs.single_action_space == gym.spaces.Discrete(2)
        envs.close()

    def test_different_spaces(self):
        with pytest.raises(RuntimeError, match="observation spaces"):
            gym.vector.AsyncVectorEnv([
                lambda: gym.make("CartPole-v1"),
                lambda: gym.make("MountainCar-v0")
            ])  # fmt: skip

    def test_batch_policy(self):
        def policy(weights, observations):
            logits = np.dot(observations, weights)
            return softmax(logits, axis=1)

        envs = gym.vector.make("CartPole-v1", num_envs=3)
        weights = np.random.randn(
            flatdim(envs.single_observation_space),
            envs.single_action_space.n
        )  # fmt: skip
        observations = envs.reset()
        actions = policy(weights, observations).argmax(axis=1)
        observations, rewards, dones, infos = envs.step(actions)
        assert observations.shape == (3, 4)
        envs.close()


class TestToday:
    """The same samples with Gymnasium's `reset` and `step`."""

    def test_creating_and_stepping(self):
        envs = shoal.make("CartPole-v1", num_envs=3)
        observations, infos = envs.reset(seed=42)
        actions = np.array([1, 0, 1])
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        assert observations in envs.observation_space
        assert rewards.tolist() == [1.0, 1.0, 1.0]
        assert not terminations.any()
        assert infos == {}
        envs.close()

    def test_different_parameters(self):
        envs = shoal.vector.SyncVectorEnv(
            [
                lambda: gymnasium.make("Pendulum-v1", g=9.81),
                lambda: gymnasium.make("Pendulum-v1", g=1.62),
            ]
        )
        assert envs.get_attr("g") == (9.81, 1.62)
        envs.close()

    def test_automatic_resets(self):
        envs = shoal.make("FrozenLake-v1", num_envs=3, is_slippery=False, autoreset_mode="SameStep")
        envs.reset()
        envs.step(np.array([1, 2, 2]))
        observations, _, terminations, _, infos = envs.step(np.array([1, 2, 1]))
        assert terminations.tolist() == [False, False, True]
        assert observations.tolist() == [8, 2, 0]
        assert infos["final_obs"][2] == 5
        envs.close()

    def test_different_spaces(self):
        with pytest.raises(RuntimeError, match="observation spaces"):
            shoal.make(
                [lambda: gymnasium.make("CartPole-v1"), lambda: gymnasium.make("MountainCar-v0")]
            )
