"""A kernel as a single environment of Gymnasium's."""

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

__all__ = ["KernelEnv", "of_single"]


class KernelEnv(gymnasium.Env[Any, Any]):
    """One slot of a kernel, which is reset when the user says so.

    The kernel's parameters and the fields of its state are attributes that can be read and set.

    Args:
        kernel: What it is.
        render_mode: ``"rgb_array"``, ``"human"`` for a window, which needs pygame, or None.

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
            raise ValueError(f"kernel {kernel.name} draws no pictures")
        self.kernel = kernel
        self.observation_space = kernel.observation_space
        self.action_space = kernel.action_space
        self.metadata = kernel.metadata
        self.render_mode = render_mode
        drawn = replace(kernel, render_mode="rgb_array") if kernel.draws else kernel
        self.pool = KernelPool(drawn, 1, autoreset_mode=AutoresetMode.DISABLED, workers=0)
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
        """A copy of its generator, which lives in the kernel."""
        return self.pool.generator(0)

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:  # noqa: ARG002 - it is refused
        raise AttributeError("the generator of a kernel is seeded by reset(seed=...)")

    @property
    def np_random_seed(self) -> int:
        """The seed of its generator; -1 before it has one."""
        seed = self.pool.seed(0)
        return -1 if seed is None else seed

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)  # for those who ask it whether it was seeded
        self.pool.reset(seeds=[seed], options=options)
        batch = self.pool.recv()
        self._show()
        return row_of(batch.observations, 0), _info(batch.infos)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action."""
        try:
            observations, rewards, terminated, truncated, infos = self.pool.step([action])
        except SlotFinishedError as error:
            raise SlotFinishedError("the episode is over: it needs a reset") from error
        self._show()
        return (
            row_of(observations, 0),
            float(rewards[0]),
            bool(terminated[0]),
            bool(truncated[0]),
            _info(infos),
        )

    def render(self) -> Any:
        """A picture; in a window, resets and steps show it themselves."""
        if self.render_mode == "rgb_array":
            return self.picture()
        if self.render_mode is None:
            gymnasium.logger.warn("render was called, but the environment has no render_mode")
        return None

    def picture(self) -> npt.NDArray[np.uint8]:
        """What it looks like, whatever the render mode."""
        (drawn,) = self.pool.render()
        picture: npt.NDArray[np.uint8] = drawn
        return picture

    @property
    def window(self) -> Window:
        """Where people see it; it opens with the first picture."""
        if self._window is None:
            frames_per_second = int(self.metadata.get("render_fps", 30))
            self._window = Window(self.kernel.name, frames_per_second)
        return self._window

    def show(self) -> None:
        """Show what it looks like in a window."""
        self.window.show(self.picture())

    def close(self) -> None:
        """Give everything back; a second call does nothing."""
        if self._window is not None:
            self._window.close()
            self._window = None
        self.pool.close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self.show()


def of_single(prototype: gymnasium.Env[Any, Any]) -> Kernel:
    """The kernel of a :class:`KernelEnv`, with what ``gymnasium.make`` was told of it."""
    env = prototype.unwrapped
    assert isinstance(env, KernelEnv)
    env.close()
    limit = None if prototype.spec is None else prototype.spec.max_episode_steps
    return replace(env.kernel, max_episode_steps=limit, render_mode=env.render_mode)


def _info(infos: Any) -> dict[str, Any]:
    columns = infos.columns if isinstance(infos, ColumnInfos) else {}
    info: dict[str, Any] = row_of(columns, 0)
    return info
