"""A wrapper that shows all slots in a window."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import gymnasium.vector
import numpy as np
from gymnasium.error import DependencyNotInstalled

from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import Step, VectorWrapper

__all__ = ["HumanRendering"]


class HumanRendering(VectorWrapper):
    """Shows the frames of all slots in a window, after every step and reset.

    Args:
        env: The vector to wrap, which renders images.
        screen_size: Width and height of the window; by default those of one frame.
    """

    ACCEPTED_RENDER_MODES = ("rgb_array", "rgb_array_list", "depth_array", "depth_array_list")

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv[Any, Any, Any],
        screen_size: tuple[int, int] | None = None,
    ) -> None:
        super().__init__(env)
        self.screen_size = screen_size
        self.scaled_subenv_size: tuple[int, int] | None = None
        self.num_rows: int | None = None
        self.num_cols: int | None = None
        self.window: Any = None
        self.clock: Any = None
        if env.render_mode not in self.ACCEPTED_RENDER_MODES:
            raise ValueError(
                f"Expected env.render_mode to be one of {list(self.ACCEPTED_RENDER_MODES)} but got "
                f"'{env.render_mode}'"
            )
        if "render_fps" not in env.metadata:
            raise ValueError(
                "The base environment must specify 'render_fps' to be used with the "
                "HumanRendering wrapper"
            )
        if "human" not in env.metadata["render_modes"]:
            self.metadata = deepcopy(env.metadata)
            self.metadata["render_modes"].append("human")

    @property
    def render_mode(self) -> str:  # type: ignore[override]
        """Always ``"human"``."""
        return "human"

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and show it."""
        result = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        self._show()
        return result

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and show it."""
        result = self.env.step(actions)
        self._show()
        return result

    def close(self, **kwargs: Any) -> None:
        """Close the window and the wrapped vector."""
        if self.window is not None:
            pygame = _pygame()
            pygame.display.quit()
            pygame.quit()
            self.window = None
        super().close(**kwargs)

    def _show(self) -> None:
        pygame, cv2 = _pygame(), _cv2()
        rendered: Any = self.env.render()
        newest = [frame[-1] if isinstance(frame, list) else frame for frame in rendered]
        # pygame expects the width as the first axis.
        frames = np.array(newest, np.uint8).swapaxes(1, 2)
        width, height = frames.shape[1:3]
        if self.screen_size is None:
            self.screen_size = (width, height)
        if self.scaled_subenv_size is None or self.num_cols is None:
            self.num_rows, self.num_cols, self.scaled_subenv_size = _grid_layout(
                self.num_envs, (width, height), self.screen_size
            )
        wide, high = self.scaled_subenv_size
        screen = np.zeros((*self.screen_size, 3), np.uint8)
        for slot, frame in enumerate(frames):
            left, top = slot % self.num_cols * wide, slot // self.num_cols * high
            screen[left : left + wide, top : top + high] = cv2.resize(frame, (high, wide))
        if self.window is None:
            pygame.display.init()
            self.window = pygame.display.set_mode(self.screen_size)
        if self.clock is None:
            self.clock = pygame.time.Clock()
        self.window.blit(pygame.surfarray.make_surface(screen), (0, 0))
        pygame.event.pump()
        self.clock.tick(self.metadata["render_fps"])
        pygame.display.flip()


def _grid_layout(
    count: int, size: tuple[int, int], screen: tuple[int, int]
) -> tuple[int, int, tuple[int, int]]:
    """Return the rows and columns for ``count`` frames, and the size of a frame on the screen.

    >>> _grid_layout(3, size=(600, 400), screen=(600, 400))
    (2, 2, (300, 200))
    """
    width_ratio, height_ratio = size[0] / screen[0], size[1] / screen[1]
    rows = cols = 1
    while rows * cols < count:
        tall, wide = rows * height_ratio, cols * width_ratio
        rows, cols = rows + (tall <= wide), cols + (wide <= tall)
    scale = min(screen[0] / (cols * size[0]), screen[1] / (rows * size[1]))
    return rows, cols, (int(size[0] * scale), int(size[1] * scale))


def _pygame() -> Any:
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            "HumanRendering needs pygame: pip install 'gymnasium[classic-control]'"
        ) from error
    return pygame


def _cv2() -> Any:
    try:
        import cv2
    except ImportError as error:
        raise DependencyNotInstalled(
            "HumanRendering needs OpenCV: pip install 'gymnasium[other]'"
        ) from error
    return cv2
