"""A wrapper that moves the channels of images to the first axis."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first
from stable_baselines3.common.vec_env import vec_transpose as original

from shoal.sb3._infos import TERMINAL_OBSERVATION
from shoal.sb3.base_vec_env import (
    VecEnv,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
    counterpart_of,
)

__all__ = ["VecTransposeImage"]


@counterpart_of(original.VecTransposeImage)
class VecTransposeImage(VecEnvWrapper):
    """Transposes images from (height, width, channels) to (channels, height, width) for PyTorch.

    Args:
        venv: The vector to wrap. In Dict observations, only the images are transposed.
        skip: Whether to leave observations unchanged.
    """

    def __init__(self, venv: VecEnv, skip: bool = False) -> None:
        space = venv.observation_space
        if not (is_image_space(space) or isinstance(space, spaces.Dict)):
            raise AssertionError(
                "The observation space must be an image or dictionary observation space, "
                f"not {space}"
            )
        self.skip = skip
        if skip:
            super().__init__(venv)
        elif isinstance(space, spaces.Dict):
            parts = space.spaces.items()
            self.image_space_keys = [key for key, part in parts if is_image_space(part)]
            transposed = {
                key: self.transpose_space(part, key) if key in self.image_space_keys else part
                for key, part in parts
            }
            super().__init__(venv, observation_space=spaces.Dict(transposed))
        else:
            super().__init__(venv, observation_space=self.transpose_space(space))

    @staticmethod
    def transpose_space(observation_space: Any, key: str = "") -> spaces.Box:
        """Return the space of transposed images; ``key`` is used in error messages."""
        if not is_image_space(observation_space):
            raise AssertionError(f"The observation space must be an image, not {observation_space}")
        if is_image_space_channels_first(observation_space):
            raise AssertionError(
                f"The observation space {key} must follow the channel last convention, "
                f"not {observation_space}"
            )
        height, width, channels = observation_space.shape
        return spaces.Box(0, 255, (channels, height, width), observation_space.dtype)

    @staticmethod
    def transpose_image(image: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Transpose an image or a batch; the result is a view."""
        return np.moveaxis(image, -1, -3)

    def transpose_observations(self, observations: Any) -> Any:
        """Transpose the images of one observation or a batch."""
        if self.skip:
            return observations
        if isinstance(observations, dict):
            keys = self.image_space_keys
            return {
                **observations,
                **{key: self.transpose_image(observations[key]) for key in keys},
            }
        return self.transpose_image(observations)

    def reset(self) -> VecEnvObs:
        """Reset the environments, and return transposed observations."""
        observations: VecEnvObs = self.transpose_observations(self.venv.reset())
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and return transposed observations, including terminal ones."""
        observations, rewards, dones, infos = self.venv.step_wait()
        for slot in np.flatnonzero(dones).tolist():
            if TERMINAL_OBSERVATION in infos[slot]:
                terminal = infos[slot][TERMINAL_OBSERVATION]
                infos[slot][TERMINAL_OBSERVATION] = self.transpose_observations(terminal)
        return self.transpose_observations(observations), rewards, dones, infos
