"""A vector that shows one part of Dict observations."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from stable_baselines3.common.vec_env import vec_extract_dict_obs as original

from shoal.sb3._infos import TERMINAL_OBSERVATION
from shoal.sb3.base_vec_env import VecEnv, VecEnvObs, VecEnvStepReturn, VecEnvWrapper, stands_in_for

__all__ = ["VecExtractDictObs"]


@stands_in_for(original.VecExtractDictObs)
class VecExtractDictObs(VecEnvWrapper):
    """Takes the observations under one key, and leaves the others.

    Args:
        venv: The vector to wrap.
        key: The key.
    """

    def __init__(self, venv: VecEnv, key: str) -> None:
        space = venv.observation_space
        if not isinstance(space, spaces.Dict):
            raise AssertionError(
                f"VecExtractDictObs can only be used with Dict obs space, not {space}"
            )
        if key not in space.spaces:
            raise KeyError(f"{key!r}: the observations have the keys {list(space.spaces)}")
        self.key = key
        super().__init__(venv, observation_space=space.spaces[key])

    def reset(self) -> VecEnvObs:
        """Begin new episodes, and return their observations under the key."""
        observations: VecEnvObs = self._extracted(self.venv.reset())
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and return the observations under the key."""
        observations, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            if TERMINAL_OBSERVATION in info:
                info[TERMINAL_OBSERVATION] = info[TERMINAL_OBSERVATION][self.key]
        return self._extracted(observations), rewards, dones, infos

    def _extracted(self, observations: Any) -> Any:
        return observations[self.key]
