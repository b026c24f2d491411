"""The interface of OpenAI Gym."""

import gymnasium
import numpy as np
import pytest

import shoal.legacy as gym


class Counter(gym.Env):
    """An environment of OpenAI Gym's interface: `seed`, and four values from `step`."""

    observation_space = gym.spaces.Discrete(100)
    action_space = gym.spaces.Discrete(2)
    limit = 3

    def __init__(self):
        self.first = 0
        self.closed = False

    def seed(self, seed=None):
        self.first = seed

    def reset(self):
        self.count = self.first
        return self.count

    def step(self, action):
        self.count += 1
        done = self.count - self.first >= self.limit
        return self.count, float(action), done, {"TimeLimit.truncated": True} if done else {}

    def close(self):
        self.closed = True


def test_openai_gym_environments():
    envs = gym.vector.SyncVectorEnv([Counter] * 2)
    envs.seed(10)
    assert envs.reset().tolist() == [10, 11]
    for _ in range(2):
        observations, rewards, dones, infos = envs.step([1, 0])
        assert infos == ({}, {})
    assert rewards.tolist() == [1.0, 0.0]
    observations, _, dones, infos = envs.step([1, 0])
    assert dones.tolist() == [True, True]
    assert observations.tolist() == [10, 11]
    assert infos == (
        {"terminal_observation": 13, "TimeLimit.truncated": True},
        {"terminal_observation": 14, "TimeLimit.truncated": True},
    )
    envs.set_attr("limit", [5, 6])
    assert envs.get_attr("limit") == (5, 6)
    envs.close()
    assert envs.closed
    assert all(env.old.closed for env in envs._pool.envs)


def test_gymnasium_environments():
    envs = gym.vector.SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    observations = envs.reset(seed=3)
    expected, _ = gymnasium.make("CartPole-v1").reset(seed=3)
    assert (observations[0] == expected).all()
    dones = np.zeros(2, np.bool_)
    while not dones.any():
        observations, _, dones, infos = envs.step([1, 1])
    slot = np.flatnonzero(dones)[0]
    assert infos[slot]["terminal_observation"].shape == (4,)
    assert "TimeLimit.truncated" not in infos[slot]
    envs.close()


def test_attributes_are_found_behind_wrappers():
    envs = gym.vector.SyncVectorEnv([lambda: gymnasium.make("Pendulum-v1", g=3.0)])
    assert envs.get_attr("g") == (3.0,)
    envs.set_attr("g", 4.0)
    assert envs.get_attr("g") == (4.0,)
    envs.close()


def test_time_limits_are_marked():
    envs = gym.vector.make("CartPole-v1", num_envs=2, max_episode_steps=1)
    envs.reset()
    *_, infos = envs.step([0, 1])
    assert [info["TimeLimit.truncated"] for info in infos] == [True, True]
    envs.close()


def test_async_and_wait_methods():
    envs = gym.vector.make("CartPole-v1", num_envs=2)
    envs.reset_async()
    assert envs.reset_wait().shape == (2, 4)
    envs.step_async([0, 1])
    assert len(envs.step_wait()) == 4
    envs.close()


def test_observation_that_looks_like_a_pair_with_an_info():
    class Pair(gym.Env):
        observation_space = gym.spaces.Tuple(
            (gym.spaces.Discrete(3), gym.spaces.Dict({"x": gym.spaces.Discrete(3)}))
        )
        action_space = gym.spaces.Discrete(2)

        def reset(self):
            return 1, {"x": 2}

        def step(self, action):
            return (0, {"x": 1}), 0.0, False, {}

    envs = gym.vector.SyncVectorEnv([Pair])
    first, second = envs.reset()
    assert (first.tolist(), second["x"].tolist()) == ([1], [2])
    envs.close()


def test_single_environment():
    env = gym.make("CartPole-v1", render_mode="rgb_array")
    assert env.seed(3) == [3]
    observation = env.reset()
    expected, _ = gymnasium.make("CartPole-v1").reset(seed=3)
    assert (observation == expected).all()
    observation, reward, done, info = env.step(0)
    assert (reward, done, info) == (1.0, False, {})
    assert env.gravity == 9.8
    with pytest.raises(ValueError, match="render_mode='human'"):
        env.render(mode="human")
    env.close()


def test_retired_ids_make_the_newest_version():
    with pytest.warns(UserWarning, match="Pendulum-v0 .* using Pendulum-v1"):
        env = gym.make("Pendulum-v0", g=1.62)
    assert env.g == 1.62
    with pytest.raises(gymnasium.error.NameNotFound):
        gym.make("NoSuchEnv-v0")


def test_expected_spaces_are_checked():
    with pytest.raises(RuntimeError, match="observation space is Discrete"):
        gym.vector.SyncVectorEnv([Counter], observation_space=gym.spaces.Discrete(5))


def test_wrappers():
    wrapper = gymnasium.wrappers.FlattenObservation
    envs = gym.vector.make("CartPole-v1", num_envs=2, wrappers=wrapper)
    assert envs.observation_space.shape == (2, 4)
    envs.close()
