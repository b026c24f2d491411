"""A wrapper that extracts one part of Dict observations."""

from __future__ import annotations

from typing import Any

from gymnasium import spaces
from stable_baselines3.common.vec_env import vec_extract_dict_obs as original

from shoal.sb3._infos import TERMINAL_OBSERVATION
from shoal.sb3.base_vec_env import (
    VecEnv,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
    counterpart_of,
)

__all__ = ["VecExtractDictObs"]


@counterpart_of(original.VecExtractDictObs)
class VecExtractDictObs(VecEnvWrapper):
    """Extracts one key of Dict observations.

    Args:
        venv: The vector to wrap.
        key: The key to extract.
    """

    def __init__(self, venv: VecEnv, key: str) -> None:
        space = venv.observation_space
        if not isinstance(space, spaces.Dict):
            raise AssertionError(
                f"VecExtractDictObs can only be used with Dict obs space, not {space}"
            )
        if key not in space.spaces:
            raise KeyError(f"{key!r} is not a key of the observations: {list(space.spaces)}")
        self.key = key
        super().__init__(venv, observation_space=space.spaces[key])

    def reset(self) -> VecEnvObs:
        """Reset the environments, and return the extracted observations."""
        observations: VecEnvObs = self._extract(self.venv.reset())
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and return the extracted observations."""
        observations, rewards, dones, infos = self.venv.step_wait()
        for info in infos:
            if TERMINAL_OBSERVATION in info:
                info[TERMINAL_OBSERVATION] = info[TERMINAL_OBSERVATION][self.key]
        return self._extract(observations), rewards, dones, infos

    def _extract(self, observations: Any) -> Any:
        return observations[self.key]
