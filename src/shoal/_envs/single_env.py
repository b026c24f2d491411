"""A kernel as a single Gymnasium environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from shoal._envs.window import Window
from shoal._types import ColumnInfos, row_of
from shoal.errors import SlotFinishedError
from shoal.kernels._definition import Kernel
from shoal.pools import KernelPool
from shoal.pools._kernel_slot import KernelSlot

__all__ = ["KernelEnv", "kernel_of_env"]


class KernelEnv(gymnasium.Env[Any, Any]):
    """A single environment that steps one slot of a kernel, without autoreset.

    The parameters of the kernel and the fields of its state can be read and set as attributes.

    Args:
        kernel: The kernel.
        render_mode: ``"rgb_array"``, ``"human"`` (a window, which needs pygame), or None.

    Example:
        >>> import shoal
        >>> from shoal._envs import builtin_kernel
        >>> env = KernelEnv(builtin_kernel("CartPole-v1", {}))
        >>> observation, info = env.reset(seed=42)
        >>> observation, reward, terminated, truncated, info = env.step(1)
        >>> reward
        1.0
        >>> env.close()
    """

    def __init__(self, kernel: Kernel, render_mode: str | None = None) -> None:
        if render_mode not in (None, "rgb_array", "human"):
            raise ValueError(
                f"render_mode must be 'rgb_array', 'human' or None, got {render_mode!r}"
            )
        if render_mode is not None and not kernel.draws:
            raise ValueError(f"kernel {kernel.name} does not support rendering")
        self.kernel = kernel
        self.observation_space = kernel.observation_space
        self.action_space = kernel.action_space
        self.metadata = kernel.metadata
        self.render_mode = render_mode
        renderable = replace(kernel, render_mode="rgb_array") if kernel.draws else kernel
        self.pool = KernelPool(renderable, 1, autoreset_mode=AutoresetMode.DISABLED, workers=0)
        self._window: Window | None = None
        self._slot = KernelSlot(self.pool, 0)

    def __getattr__(self, name: str) -> Any:
        if "_slot" in vars(self) and self._slot.has_of_kernel(name):
            return getattr(self._slot, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __setattr__(self, name: str, value: Any) -> None:
        if "_slot" in vars(self) and self._slot.has_of_kernel(name):
            self._slot.set_wrapper_attr(name, value)
        else:
            super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_window": None}

    @property
    def np_random(self) -> np.random.Generator:
        """A copy of the kernel's random number generator."""
        return self.pool.generator(0)

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:  # noqa: ARG002
        raise AttributeError("np_random of a kernel cannot be set, call reset(seed=...) instead")

    @property
    def np_random_seed(self) -> int:
        """The seed of the generator; -1 before the first reset."""
        seed = self.pool.seed(0)
        return -1 if seed is None else seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode."""
        super().reset(seed=seed)  # checkers inspect whether it was called
        self.pool.reset(seeds=[seed], options=options)
        batch = self.pool.recv()
        self._show()
        return row_of(batch.observations, 0), _info(batch.infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step with an action."""
        try:
            observations, rewards, terminated, truncated, infos = self.pool.step([action])
        except SlotFinishedError as error:
            raise SlotFinishedError("the episode is over, call reset first") from error
        self._show()
        return (
            row_of(observations, 0),
            float(rewards[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            _info(infos),
        )

    def render(self) -> Any:
        """Return an image in mode ``"rgb_array"``; in mode ``"human"``, reset and step render."""
        if self.render_mode == "rgb_array":
            return self.draw_image()
        if self.render_mode is None:
            gymnasium.logger.warn("render was called, but the environment has no render_mode")
        return None

    def draw_image(self) -> npt.NDArray[np.uint8]:
        """Return an image of the state in any render mode."""
        image: npt.NDArray[np.uint8]
        (image,) = self.pool.render()
        return image

    @property
    def window(self) -> Window:
        """The window; it opens with its first image."""
        if self._window is None:
            frames_per_second = int(self.metadata.get("render_fps", 30))
            self._window = Window(self.kernel.name, frames_per_second)
        return self._window

    def show(self) -> None:
        """Show the state in the window."""
        self.window.show(self.draw_image())

    def close(self) -> None:
        """Close the window and the kernel; closing twice is allowed."""
        if self._window is not None:
            self._window.close()
            self._window = None
        self.pool.close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.show()


def kernel_of_env(prototype: gymnasium.Env[Any, Any]) -> Kernel:
    """Return the kernel of a :class:`KernelEnv`, with the settings of ``gymnasium.make``."""
    env = prototype.unwrapped
    assert isinstance(env, KernelEnv)
    env.close()
    limit = None if prototype.spec is None else prototype.spec.max_episode_steps
    return replace(env.kernel, max_episode_steps=limit, render_mode=env.render_mode)


def _info(infos: Any) -> dict[str, Any]:
    columns = infos.columns if isinstance(infos, ColumnInfos) else {}
    info: dict[str, Any] = row_of(columns, 0)
    return info
