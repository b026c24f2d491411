"""The samples and statements of Stable-Baselines3's guide to vectorized environments."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

from shoal.sb3 import DummyVecEnv, SubprocVecEnv, VecEnv, VecEnvStepReturn, VecEnvWrapper

BOTH = pytest.mark.parametrize("vec_env_class", [DummyVecEnv, SubprocVecEnv])


class Reach(gym.Env):
    """Replaces FetchReach-v1, which needs MuJoCo; has the same observation keys."""

    observation_space = spaces.Dict(
        observation=spaces.Box(-1, 1, (10,), np.float64),
        desired_goal=spaces.Box(-1, 1, (3,), np.float64),
        achieved_goal=spaces.Box(-1, 1, (3,), np.float64),
    )
    action_space = spaces.Box(-1, 1, (4,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self._observed(), {"started": True}

    def step(self, action):
        ends = self.np_random.random(2) < 0.2
        return self._observed(), 0.5, bool(ends[0]), bool(ends[1]), {}

    def _observed(self):
        random = self.np_random.random
        return {"observation": random(10), "desired_goal": random(3), "achieved_goal": random(3)}


gym.register("FetchReach-v1", lambda **_: Reach())


class TestAsWritten:
    """Only the import lines differ from the guide."""

    def test_custom_wrapper(self):
        class VecExtractDictObs(VecEnvWrapper):
            """
            A vectorized wrapper for filtering a specific key from dictionary observations.
            Similar to Gym's FilterObservation wrapper:
                https://github.com/openai/gym/blob/master/gym/wrappers/filter_observation.py

            :param venv: The vectorized environment
            :param key: The key of the dictionary observation
            """

            def __init__(self, venv: VecEnv, key: str):
                self.key = key
                super().__init__(
                    venv=venv, observation_space=venv.observation_space.spaces[self.key]
                )

            def reset(self) -> np.ndarray:
                obs = self.venv.reset()
                return obs[self.key]

            def step_async(self, actions: np.ndarray) -> None:
                self.venv.step_async(actions)

            def step_wait(self) -> VecEnvStepReturn:
                obs, reward, done, info = self.venv.step_wait()
                return obs[self.key], reward, done, info

        env = DummyVecEnv([lambda: gym.make("FetchReach-v1")])
        # Wrap the VecEnv
        env = VecExtractDictObs(env, key="observation")

        assert env.reset().shape == (1, 10)
        obs, reward, done, info = env.step(np.zeros((1, 4), np.float32))
        assert obs.shape == (1, 10)

    @BOTH
    def test_conversion_to_gym(self, vec_env_class):
        vec_env = vec_env_class([Reach] * 3)
        vec_env.seed(1)
        vec_env.reset()
        terminated, should_bootstrap = [None] * 3, [None] * 3
        seen = set()
        for _ in range(60):
            _, _, dones, infos = vec_env.step(np.zeros((3, 4), np.float32))
            for env_idx in range(3):
                terminated[env_idx] = dones[env_idx] and not infos[env_idx]["TimeLimit.truncated"]
                should_bootstrap[env_idx] = not terminated[env_idx]
                seen.add((bool(dones[env_idx]), bool(terminated[env_idx])))
                assert ("terminal_observation" in infos[env_idx]) == dones[env_idx]
        assert seen == {(False, False), (True, True), (True, False)}
        vec_env.close()


class TestAsDescribed:
    @BOTH
    @pytest.mark.parametrize(
        "space",
        [
            spaces.Box(-1, 1, (2, 3)),
            spaces.Discrete(5),
            spaces.Dict(a=spaces.Box(-1, 1, (2,)), b=spaces.Discrete(3)),
            spaces.Tuple((spaces.Box(-1, 1, (2,)), spaces.Discrete(3))),
            spaces.MultiDiscrete([3, 4]),
            spaces.MultiBinary(5),
            spaces.Dict(a=spaces.Tuple((spaces.Discrete(3), spaces.Dict(b=spaces.MultiBinary(2))))),
        ],
        ids=lambda space: type(space).__name__,
    )
    def test_table_of_spaces(self, vec_env_class, space):
        class Sampling(gym.Env):
            observation_space = action_space = space

            def reset(self, *, seed=None, options=None):
                return self.observation_space.sample(), {}

            def step(self, action):
                assert action in self.action_space
                return self.observation_space.sample(), 0.0, False, False, {}

        vec_env = vec_env_class([Sampling] * 3)
        batched = gym.vector.utils.batch_space(space, 3)
        assert vec_env.reset() in batched
        observations, *_ = vec_env.step([space.sample() for _ in range(3)])
        assert observations in batched
        vec_env.close()

    @BOTH
    def test_reset_returns_observations_alone(self, vec_env_class):
        vec_env = vec_env_class([Reach] * 2)
        obs = vec_env.reset()
        assert obs["observation"].shape == (2, 10)
        assert vec_env.reset_infos == [{"started": True}] * 2
        vec_env.close()

    @BOTH
    def test_seeding_and_attributes(self, vec_env_class):
        vec_env = vec_env_class([lambda: gym.make("CartPole-v1")] * 2)
        vec_env.seed(seed=7)
        first = vec_env.reset()
        vec_env.seed(seed=7)
        assert (vec_env.reset() == first).all()
        vec_env.set_attr("gravity", 1.62)
        assert vec_env.get_attr("gravity") == [1.62] * 2
        assert vec_env.env_method("get_wrapper_attr", "length") == [0.5] * 2
        vec_env.close()
