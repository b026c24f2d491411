"""A wrapper that normalises observations and rewards."""

from __future__ import annotations

import pickle
from copy import deepcopy
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common import running_mean_std, utils
from stable_baselines3.common.preprocessing import is_image_space
from stable_baselines3.common.vec_env import vec_normalize as original

from shoal._wrapper_core.atomic_files import atomic_write
from shoal._wrapper_core.moments import RunningMeanStd, Statistics, denormalize, normalize
from shoal.sb3._infos import TERMINAL_OBSERVATION
from shoal.sb3.base_vec_env import (
    VecEnv,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
    counterpart_of,
)

__all__ = ["VecNormalize"]

Array = npt.NDArray[Any]


class VecStatistics(RunningMeanStd, running_mean_std.RunningMeanStd):
    """Statistics that pass Stable-Baselines3's checks of their class."""


@counterpart_of(original.VecNormalize)
class VecNormalize(VecEnvWrapper):
    """Scales observations to mean 0 and variance 1, and rewards by the deviation of the returns.

    The running statistics are updated while ``training`` is True.

    Args:
        venv: The vector to wrap.
        training: Whether to update the statistics.
        norm_obs: Whether to normalise observations.
        norm_reward: Whether to normalise rewards.
        clip_obs: Maximum absolute value of normalised observations.
        clip_reward: Maximum absolute value of normalised rewards.
        gamma: The discount factor of the returns.
        epsilon: Added to variances to avoid a division by zero.
        norm_obs_keys: The parts of Dict observations to normalise; all by default.
    """

    venv: Any  # None after unpickling, until set_venv is called
    old_obs: Any
    obs_rms: Any  # running statistics, or a dict of them; missing if norm_obs is False

    def __init__(
        self,
        venv: VecEnv,
        training: bool = True,
        norm_obs: bool = True,
        norm_reward: bool = True,
        clip_obs: float = 10.0,
        clip_reward: float = 10.0,
        gamma: float = 0.99,
        epsilon: float = 1e-8,
        norm_obs_keys: list[str] | None = None,
    ) -> None:
        super().__init__(venv)
        self.norm_obs = norm_obs
        self.norm_obs_keys = norm_obs_keys
        if norm_obs:
            self._prepare_observations(clip_obs)
        self.ret_rms: Any = VecStatistics(shape=())
        self.clip_obs = clip_obs
        self.clip_reward = clip_reward
        self.returns = np.zeros(self.num_envs)
        self.gamma = gamma
        self.epsilon = epsilon
        self.training = training
        self.norm_reward = norm_reward
        self.old_reward: Array = np.array([])

    def _prepare_observations(self, limit: float) -> None:
        space = self.observation_space
        if isinstance(space, spaces.Dict):
            if self.norm_obs_keys is None:
                self.norm_obs_keys = list(space.spaces)
            for key in self.norm_obs_keys:
                if key not in space.spaces:
                    raise KeyError(f"norm_obs_keys: {key!r} is not one of {list(space.spaces)}")
                _check_box(space.spaces[key], key)
            self.obs_spaces = space.spaces
            self.obs_rms = {
                key: VecStatistics(shape=space.spaces[key].shape or ())
                for key in self.norm_obs_keys
            }
            self.observation_space = spaces.Dict(
                {
                    key: _normalized_space(part, limit) if key in self.obs_rms else part
                    for key, part in space.spaces.items()
                }
            )
            return
        _check_box(space)
        if self.norm_obs_keys is not None:
            raise ValueError(
                "`norm_obs_keys` param is applicable only with `gym.spaces.Dict` observation spaces"
            )
        self.obs_rms = VecStatistics(shape=space.shape or ())
        self.observation_space = _normalized_space(space, limit)

    def reset(self) -> VecEnvObs:
        """Reset the environments, and return normalised observations."""
        observations = self.venv.reset()
        self.old_obs = observations
        self.returns = np.zeros(self.num_envs)
        self._update_obs_rms(observations)
        scaled: VecEnvObs = self.normalize_obs(observations)
        return scaled

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and return it normalised, including terminal observations."""
        observations, rewards, dones, infos = self.venv.step_wait()
        self.old_obs = observations
        self.old_reward = rewards
        self._update_obs_rms(observations)
        if self.training:
            self.returns = self.returns * self.gamma + rewards
            self.ret_rms.update(self.returns)
        for slot in np.flatnonzero(dones).tolist():
            if TERMINAL_OBSERVATION in infos[slot]:
                terminal = infos[slot][TERMINAL_OBSERVATION]
                infos[slot][TERMINAL_OBSERVATION] = self.normalize_obs(terminal)
        self.returns[dones] = 0
        return self.normalize_obs(observations), self.normalize_reward(rewards), dones, infos

    def _update_obs_rms(self, observations: Any) -> None:
        if not (self.training and self.norm_obs):
            return
        if isinstance(self.obs_rms, dict):
            for key, statistics in self.obs_rms.items():
                statistics.update(observations[key])
        else:
            self.obs_rms.update(observations)

    def normalize_obs(self, obs: Any) -> Any:
        """Normalise an observation or a batch, without updating the statistics."""
        if not self.norm_obs:
            return deepcopy(obs)
        if not isinstance(self.obs_rms, dict):
            return normalize(obs, self.obs_rms, self.epsilon, self.clip_obs)
        return {
            key: normalize(part, self.obs_rms[key], self.epsilon, self.clip_obs)
            if key in self.obs_rms
            else deepcopy(part)
            for key, part in obs.items()
        }

    def normalize_reward(self, reward: Array) -> npt.NDArray[np.float32]:
        """Normalise rewards, without updating the statistics."""
        if self.norm_reward:
            scaled = reward / np.sqrt(self.ret_rms.var + self.epsilon)
            reward = np.clip(scaled, -self.clip_reward, self.clip_reward)
        return reward.astype(np.float32)

    def unnormalize_obs(self, obs: Any) -> Any:
        """Invert :meth:`normalize_obs`, up to clipping."""
        if not self.norm_obs:
            return deepcopy(obs)
        if not isinstance(self.obs_rms, dict):
            return denormalize(obs, self.obs_rms, self.epsilon)
        return {
            key: denormalize(part, self.obs_rms[key], self.epsilon)
            if key in self.obs_rms
            else deepcopy(part)
            for key, part in obs.items()
        }

    def unnormalize_reward(self, reward: Array) -> Array:
        """Invert :meth:`normalize_reward`, up to clipping."""
        if not self.norm_reward:
            return reward
        deviation: Array = np.sqrt(self.ret_rms.var + self.epsilon)
        return reward * deviation

    def get_original_obs(self) -> Any:
        """Return the observations of the last step or reset, not normalised."""
        return deepcopy(self.old_obs)

    def get_original_reward(self) -> Array:
        """Return the rewards of the last step, not normalised."""
        return self.old_reward.copy()

    def set_venv(self, venv: VecEnv) -> None:
        """Set the vector to wrap, after unpickling."""
        if self.venv is not None:
            raise ValueError("Trying to set venv of already initialized VecNormalize wrapper.")
        utils.check_shape_equal(self.observation_space, venv.observation_space)
        self.venv = venv
        self.num_envs = venv.num_envs
        self.render_mode = getattr(venv, "render_mode", None)
        self.returns = np.zeros(self.num_envs)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the vector and the returns of its episodes."""
        state = vars(self).copy()
        del state["venv"], state["returns"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state without a vector; see :meth:`set_venv`."""
        vars(self).update(state)
        self.venv = None

    def save(self, save_path: str) -> None:
        """Write statistics and settings to a pickle file.

        Both libraries can load the file, unless the wrapper is an instance of a subclass.
        """
        saved = self._as_original() if type(self) is VecNormalize else self
        with atomic_write(save_path) as file:
            pickle.dump(saved, file)

    @staticmethod
    def load(load_path: str, venv: VecEnv) -> VecNormalize:
        """Wrap a vector with the statistics and settings of a file.

        Loading a pickle can execute arbitrary code: only load files that you trust.
        """
        with open(load_path, "rb") as file:
            saved = pickle.load(file)
        if not isinstance(saved, original.VecNormalize):
            raise TypeError(f"{load_path} holds a {type(saved).__name__}, expected a VecNormalize")
        wrapper: Any = saved
        if type(saved) is original.VecNormalize:
            wrapper = VecNormalize.__new__(VecNormalize)
            wrapper.__setstate__(_state_of(saved))
        wrapper.set_venv(venv)
        return cast(VecNormalize, wrapper)

    def _as_original(self) -> original.VecNormalize:
        """Convert to Stable-Baselines3's class, without a vector."""
        converted = original.VecNormalize.__new__(original.VecNormalize)
        state = self.__getstate__()
        for name in _STATISTICS & state.keys():
            state[name] = _map_statistics(state[name], _to_original_statistics)
        # Attributes that the pickling of Stable-Baselines3's class expects.
        defaults: dict[str, Any] = {
            "venv": None,
            "class_attributes": {},
            "returns": None,
            "reset_infos": [{} for _ in range(self.num_envs)],
            "_seeds": [None] * self.num_envs,
            "_options": [{} for _ in range(self.num_envs)],
        }
        vars(converted).update(defaults | state)
        return converted


_STATISTICS = {"obs_rms", "ret_rms"}

# Attributes of Stable-Baselines3's class that this class does not pickle.
_VECTOR_ATTRIBUTES = {"venv", "returns", "class_attributes", "reset_infos", "_seeds", "_options"}


def _state_of(saved: Any) -> dict[str, Any]:
    """Return the state of a wrapper of either library, as a state of this class."""
    state = {name: value for name, value in vars(saved).items() if name not in _VECTOR_ATTRIBUTES}
    for name in _STATISTICS & state.keys():
        state[name] = _map_statistics(state[name], _to_own_statistics)
    space = state["observation_space"]
    if "norm_obs_keys" not in state:  # older releases do not write this option
        state["norm_obs_keys"] = list(space.spaces) if isinstance(space, spaces.Dict) else None
    return state


def _map_statistics(statistics: Any, convert: Any) -> Any:
    if isinstance(statistics, dict):
        return {key: convert(part) for key, part in statistics.items()}
    return convert(statistics)


def _to_own_statistics(statistics: Statistics) -> VecStatistics:
    result = VecStatistics()
    result.mean, result.var, result.count = statistics.mean, statistics.var, statistics.count
    return result


def _to_original_statistics(statistics: Statistics) -> running_mean_std.RunningMeanStd:
    result = running_mean_std.RunningMeanStd()
    result.mean, result.var, result.count = statistics.mean, statistics.var, statistics.count
    return result


def _check_box(space: spaces.Space[Any], key: str | None = None) -> None:
    if isinstance(space, spaces.Box):
        return
    if key is None:
        raise ValueError(
            "VecNormalize only supports `gym.spaces.Box` and `gym.spaces.Dict` observation spaces, "
            f"not {space}"
        )
    raise ValueError(
        f"VecNormalize only supports `gym.spaces.Box` observation spaces but {key} is of type "
        f"{space}: pass the observation keys to normalise as `norm_obs_keys`"
    )


def _normalized_space(space: Any, limit: float) -> Any:
    """Return the space of normalised observations: image spaces become float."""
    if not is_image_space(space):
        return space
    return spaces.Box(-limit, limit, space.shape, np.float32)
