"""A wrapper that detects NaN and infinity."""

from __future__ import annotations

import warnings
from typing import Any

import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import vec_check_nan as original

from shoal._wrapper_core.nan_check import find_non_finite
from shoal.sb3.base_vec_env import (
    VecEnv,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
    counterpart_of,
)

__all__ = ["VecCheckNan"]


@counterpart_of(original.VecCheckNan)
class VecCheckNan(VecEnvWrapper):
    """Reports whether NaN and infinity originate from the model's actions or an environment.

    Args:
        venv: The vector to wrap.
        raise_exception: Whether to raise a ValueError instead of warning.
        warn_once: Whether to stop checking after the first warning.
        check_inf: Whether to check for infinity as well.
    """

    def __init__(
        self,
        venv: VecEnv,
        raise_exception: bool = False,
        warn_once: bool = True,
        check_inf: bool = True,
    ) -> None:
        if isinstance(venv.action_space, spaces.Dict):
            raise NotImplementedError("VecCheckNan doesn't support dict action spaces")
        super().__init__(venv)
        self.raise_exception = raise_exception
        self.warn_once = warn_once
        self.check_inf = check_inf
        self._user_warned = False
        self._actions: Any = None
        self._observations: Any = None

    def reset(self) -> VecEnvObs:
        """Reset the environments, and check their observations."""
        observations = self.venv.reset()
        self._check("the environment observation (at reset)", observations=observations)
        self._observations = observations
        return observations

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Check the actions, and start to step."""
        source = "the RL model, Last given value was: \r\n\tobservations={}"
        self._check(source, self._observations, actions=actions)
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and check its observations and rewards."""
        observations, rewards, dones, infos = self.venv.step_wait()
        source = "the environment, Last given value was: \r\n\taction={}"
        self._check(source, self._actions, observations=observations, rewards=rewards)
        self._observations = observations
        return observations, rewards, dones, infos

    def check_array_value(self, name: str, value: npt.NDArray[Any]) -> list[tuple[str, str]]:
        """Return pairs of a name and ``"inf"`` or ``"nan"`` for values that are not finite."""
        return list(find_non_finite(name, value, check_inf=self.check_inf))

    def _check(self, source: str, last: Any = None, **values: Any) -> None:
        if self._user_warned and self.warn_once and not self.raise_exception:
            return
        problems = [
            f"found {kind} in {location}"
            for name, value in values.items()
            for location, kind in find_non_finite(name, value, check_inf=self.check_inf)
        ]
        if not problems:
            return
        self._user_warned = True
        message = f"{', '.join(problems)}.\r\nOriginated from {source.format(last)}"
        if self.raise_exception:
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=3)
