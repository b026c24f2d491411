"""A vector that watches for numbers that are none."""

from __future__ import annotations

import warnings
from typing import Any

import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import vec_check_nan as original

from shoal._wrapper_core.nan_check import not_finite
from shoal.sb3.base_vec_env import VecEnv, VecEnvObs, VecEnvStepReturn, VecEnvWrapper, stands_in_for

__all__ = ["VecCheckNan"]


@stands_in_for(original.VecCheckNan)
class VecCheckNan(VecEnvWrapper):
    """Tells where NaN and infinity come from: from the model's actions, or from an environment.

    Args:
        venv: The vector to wrap.
        raise_exception: Whether to raise a ValueError, or to warn.
        warn_once: Whether one warning is enough; nothing is looked at after it.
        check_inf: Whether infinity counts as well.
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
        """Begin new episodes, and look at their observations."""
        observations = self.venv.reset()
        self._check("the environment observation (at reset)", observations=observations)
        self._observations = observations
        return observations

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Look at the actions, and begin to step with them."""
        source = "the RL model, Last given value was: \r\n\tobservations={}"
        self._check(source, self._observations, actions=actions)
        self._actions = actions
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and look at its observations and rewards."""
        observations, rewards, dones, infos = self.venv.step_wait()
        source = "the environment, Last given value was: \r\n\taction={}"
        self._check(source, self._actions, observations=observations, rewards=rewards)
        self._observations = observations
        return observations, rewards, dones, infos

    def check_array_value(self, name: str, value: npt.NDArray[Any]) -> list[tuple[str, str]]:
        """What is wrong with an array, as pairs of its name and "inf" or "nan"."""
        return list(not_finite(name, value, check_inf=self.check_inf))

    def _check(self, source: str, last: Any = None, **values: Any) -> None:
        if self._user_warned and self.warn_once and not self.raise_exception:
            return
        found = [
            f"found {kind} in {place}"
            for name, value in values.items()
            for place, kind in not_finite(name, value, check_inf=self.check_inf)
        ]
        if not found:
            return
        self._user_warned = True
        message = f"{', '.join(found)}.\r\nOriginated from {source.format(last)}"
        if self.raise_exception:
            raise ValueError(message)
        warnings.warn(message, UserWarning, stacklevel=3)
