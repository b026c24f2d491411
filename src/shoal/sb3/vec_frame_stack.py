"""A vector whose observations are stacks of the last ones."""

from __future__ import annotations

from collections.abc import Mapping

from gymnasium import spaces
from stable_baselines3.common.vec_env import vec_frame_stack as original

from shoal.sb3.base_vec_env import VecEnv, VecEnvObs, VecEnvStepReturn, VecEnvWrapper, stands_in_for
from shoal.sb3.stacked_observations import StackedObservations

__all__ = ["VecFrameStack"]


@stands_in_for(original.VecFrameStack)
class VecFrameStack(VecEnvWrapper):
    """Stacks the last observations of every environment, images above all.

    Args:
        venv: The vector to wrap.
        n_stack: How many observations make a stack.
        channels_order: ``"first"`` or ``"last"``: the axis to join along. None finds it out for
            images, and is the last one otherwise. For a Dict also a mapping, with one for each key.
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
        """Begin new episodes, and return their stacks: zeros but for the newest."""
        stacks: VecEnvObs = self.stacked_obs.reset(self.venv.reset())
        return stacks

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and return stacks; terminal observations are stacked too."""
        observations, rewards, dones, infos = self.venv.step_wait()
        stacks, infos = self.stacked_obs.update(observations, dones, infos)
        return stacks, rewards, dones, infos
