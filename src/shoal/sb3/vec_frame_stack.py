"""A wrapper that stacks the most recent observations."""

from __future__ import annotations

from collections.abc import Mapping

from gymnasium import spaces
from stable_baselines3.common.vec_env import vec_frame_stack as original

from shoal.sb3.base_vec_env import (
    VecEnv,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
    counterpart_of,
)
from shoal.sb3.stacked_observations import StackedObservations

__all__ = ["VecFrameStack"]


@counterpart_of(original.VecFrameStack)
class VecFrameStack(VecEnvWrapper):
    """Stacks the last observations of each environment, usually images.

    Args:
        venv: The vector to wrap.
        n_stack: Number of observations in a stack.
        channels_order: The channel axis, ``"first"`` or ``"last"``. If None, it is inferred for
            images, and is the last axis otherwise. For a Dict, it can be a mapping from keys.
    """

    def __init__(
        self, venv: VecEnv, n_stack: int, channels_order: str | Mapping[str, str] | None = None
    ) -> None:
        space = venv.observation_space
        if not isinstance(space, spaces.Box | spaces.Dict):
            raise AssertionError(
                "VecFrameStack only works with gym.spaces.Box and gym.spaces.Dict observation "
                f"spaces, not with {space}"
            )
        self.stacked_obs = StackedObservations(venv.num_envs, n_stack, space, channels_order)
        super().__init__(venv, observation_space=self.stacked_obs.stacked_observation_space)

    def reset(self) -> VecEnvObs:
        """Reset the environments, and return new stacks: zeros followed by the observations."""
        stacks: VecEnvObs = self.stacked_obs.reset(self.venv.reset())
        return stacks

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and return stacks; terminal observations are stacked as well."""
        observations, rewards, dones, infos = self.venv.step_wait()
        stacks, infos = self.stacked_obs.update(observations, dones, infos)
        return stacks, rewards, dones, infos
