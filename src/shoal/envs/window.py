"""A window that shows pictures, for people to look at."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

__all__ = ["Window", "import_pygame"]


def import_pygame() -> ModuleType:
    """pygame, which only windows need."""
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled("a window needs pygame: pip install 'shoal[human]'") from error
    return pygame


class Window:
    """A window of pygame's, opened by the first picture.

    Args:
        title: What stands above it.
        frames_per_second: How many pictures are shown in a second at most.
    """

    def __init__(self, title: str, frames_per_second: int) -> None:
        self._title, self._frames_per_second = title, frames_per_second
        self._pygame = import_pygame()
        self._surface: Any = None
        self._clock: Any = None

    def show(self, picture: npt.NDArray[np.uint8]) -> None:
        """Show a picture of (height, width, 3) bytes, when it is time for the next one."""
        pygame = self._pygame
        height, width = picture.shape[:2]
        if self._surface is None:
            pygame.display.init()
            pygame.display.set_caption(self._title)
            self._surface = pygame.display.set_mode((width, height))
            self._clock = pygame.time.Clock()
        # What is seen has its width first in pygame, its height first everywhere else.
        shown = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        self._surface.blit(shown, (0, 0))
        pygame.event.pump()
        pygame.display.flip()
        self._clock.tick(self._frames_per_second)

    def is_pressed(self, *names: str) -> bool:
        """Whether one of these keys is held down, by pygame's names for them."""
        if self._surface is None:
            return False
        self._pygame.event.pump()
        pressed = self._pygame.key.get_pressed()
        return any(pressed[self._pygame.key.key_code(name)] for name in names)

    def is_left(self) -> bool:
        """Whether the user wants to go: by the window's button, or by the escape key."""
        if self._surface is None:
            return False
        return bool(self._pygame.event.get(self._pygame.QUIT)) or self.is_pressed("escape")

    def say(self, title: str) -> None:
        """Change what stands above the window."""
        self._title = title
        if self._surface is not None:
            self._pygame.display.set_caption(title)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._surface is not None:
            self._surface = None
            self._pygame.display.quit()
