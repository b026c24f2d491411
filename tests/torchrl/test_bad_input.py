"""Invalid spaces, keys, actions and vectors raise precise errors."""

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

import shoal
from shoal.errors import InvalidActionError, ResetMaskError
from shoal.testing import ProbeEnv
from shoal.vector.wrappers import FilterObservation, VectorWrapper

torch = pytest.importorskip("torch")
pytest.importorskip("torchrl")

from torchrl.envs import check_env_specs  # noqa: E402

import shoal.torchrl  # noqa: E402
from shoal.torchrl import ShoalEnv  # noqa: E402
from tests.torchrl.vectors import DISABLED, VECTORS, random_envs  # noqa: E402


class TestBadInput:
    def test_error_names_the_part_without_spec(self):
        vector = shoal.make([ProbeEnv] * 2, backend="inline", autoreset_mode=DISABLED)
        with pytest.raises(TypeError, match=r"no spec for word, which is a Text"):
            ShoalEnv(vector)
        env = ShoalEnv(FilterObservation(vector, ["vector", "inner"]))
        check_env_specs(env)
        env.close()

    @pytest.mark.parametrize(
        ("space", "message"),
        [
            (spaces.Tuple((spaces.Discrete(2), spaces.Text(3))), r"observation\[1\].*Text"),
            (spaces.Dict(a=spaces.Dict(b=spaces.Sequence(spaces.Discrete(2)))), r"a\['b'\].*Sequ"),
            (spaces.Graph(spaces.Box(-1, 1, (2,)), None), "observation.*Graph"),
            (spaces.OneOf([spaces.Discrete(2)]), "observation.*OneOf"),
            (spaces.Dict(a=spaces.Box(0, 9, (2,), np.uint16)), "a: its dtype is uint16"),
            (spaces.MultiDiscrete([[2, 3], [4, 5]]), "one-hot spec for observation"),
        ],
    )
    def test_unsupported_spaces(self, space, message):
        before = ProbeEnv.open_count
        with pytest.raises(TypeError, match=message):
            shoal.torchrl.make(random_envs(space))
        assert ProbeEnv.open_count == before

    def test_make_closes_a_vector_with_unsupported_spaces(self):
        before = ProbeEnv.open_count
        with pytest.raises(TypeError, match="word"):
            shoal.torchrl.make([ProbeEnv] * 2, backend="inline")
        assert ProbeEnv.open_count == before

    def test_invalid_keys(self):
        with pytest.raises(ValueError, match="'reward' is a reserved key of TorchRL"):
            shoal.torchrl.make(random_envs(spaces.Dict(reward=spaces.Discrete(2))))
        with pytest.raises(ValueError, match="info 'place' has the same key as an observation"):
            shoal.torchrl.make(random_envs(), infos={"place": spaces.Discrete(2)})

    def test_not_a_vector(self):
        with pytest.raises(TypeError, match=r"expected a .*VectorEnv, got CartPole"):
            ShoalEnv(gymnasium.make("CartPole-v1").unwrapped)

    @pytest.mark.parametrize(
        ("action", "message"),
        [
            ([[1, 0], [0, 0], [0, 1]], r"action of slot 1 is not one-hot: \[0 0\]"),
            ([[1, 0], [0, 1], [1, 1]], r"action of slot 2 is not one-hot"),
            ([[1, 0, 0]] * 3, r"expected one-hot rows of 2 choices"),
        ],
    )
    def test_invalid_one_hot_actions(self, action, message):
        env = shoal.torchrl.make(random_envs(), backend="inline")
        data = env.reset().set("action", torch.tensor(action))
        with pytest.raises(InvalidActionError, match=message):
            env.step(data)
        assert all(not sub_env.unwrapped.received for sub_env in env.vector.envs)
        env.close()

    @pytest.mark.parametrize("action", [[0, 1, 2], [[0, 1]] * 3, [0.5, 0, 1]])
    def test_invalid_categorical_actions(self, action):
        env = shoal.torchrl.make(random_envs(), backend="inline", categorical_action_encoding=True)
        data = env.reset().set("action", torch.tensor(action))
        with pytest.raises((InvalidActionError, gymnasium.error.InvalidAction)):
            env.step(data)
        assert all(not sub_env.unwrapped.received for sub_env in env.vector.envs)
        env.close()

    def test_wrapped_vector_cannot_step_some_slots(self):
        env = ShoalEnv(VECTORS["wrapped"](DISABLED))
        with pytest.raises(ValueError, match="can only step all of its slots"):
            env.rollout(50, break_when_any_done=False, break_when_all_done=True)
        env.close()

    def test_missing_final_observation(self):
        class WithoutInfos(VectorWrapper):
            def step(self, actions):
                *results, _ = self.env.step(actions)
                return *results, {}

        env = ShoalEnv(WithoutInfos(VECTORS["inline"](AutoresetMode.SAME_STEP)))
        with pytest.raises(ValueError, match=r"slot \d .* have no 'final_obs'"):
            env.rollout(50, break_when_any_done=False)
        env.close()

    def test_info_outside_of_its_space(self):
        env = shoal.torchrl.make(
            random_envs(with_infos=True), infos={"text": spaces.Box(0.0, 1.0, ())}
        )
        with pytest.raises(ValueError, match="info 'text' does not fit"):
            env.rollout(50, break_when_any_done=False)
        env.close()

    def test_vector_that_ignores_the_reset_mask(self):
        class IgnoresMask(gymnasium.vector.VectorEnv):
            num_envs = 2
            metadata = {"autoreset_mode": DISABLED}
            single_observation_space = spaces.Box(0, 99, (1,), np.float64)
            single_action_space = spaces.Discrete(2)
            observation_space = spaces.Box(0, 99, (2, 1), np.float64)
            action_space = spaces.MultiDiscrete([2, 2])
            observations = np.zeros((2, 1))

            def reset(self, *, seed=None, options=None):
                self.observations = self.observations + 1
                return self.observations, {}

            def step(self, actions):
                terminated, truncated = np.array([True, False]), np.zeros(2, bool)
                return self.observations, np.ones(2), terminated, truncated, {}

        env = ShoalEnv(IgnoresMask())
        with pytest.raises(ResetMaskError, match="IgnoresMask has also reset slot 1"):
            env.rollout(5, break_when_any_done=False)
