"""A window that shows pictures, for people to look at."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

__all__ = ["Window", "import_pygame"]

_UNSEEN = ("dummy", "offscreen")
"""What SDL draws with where nobody can see it."""


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
        self._is_left = False

    def show(self, picture: npt.NDArray[np.uint8]) -> None:
        """Show a picture of (height, width, 3) bytes, when it is time for the next one."""
        pygame = self._pygame
        height, width = picture.shape[:2]
        if not self._is_open():
            pygame.display.init()
            pygame.display.set_caption(self._title)
            self._surface = pygame.display.set_mode((width, height))
            if pygame.display.get_driver() in _UNSEEN and "SDL_VIDEODRIVER" not in os.environ:
                self.close()
                raise RuntimeError("there is no display to open a window on")
            self._clock = pygame.time.Clock()
        # What is seen has its width first in pygame, its height first everywhere else.
        shown = pygame.surfarray.make_surface(picture.swapaxes(0, 1))
        self._surface.blit(shown, (0, 0))
        self._listen()
        pygame.display.flip()
        self._clock.tick(self._frames_per_second)

    def is_pressed(self, *names: str) -> bool:
        """Whether one of these keys is held down, by pygame's names for them."""
        if not self._is_open():
            return False
        self._listen()
        pressed = self._pygame.key.get_pressed()
        return any(pressed[self._pygame.key.key_code(name)] for name in names)

    def is_left(self) -> bool:
        """Whether the user has wanted to go: by the window's button, or by the escape key."""
        self._is_left |= self.is_pressed("escape")
        return self._is_left

    def say(self, title: str) -> None:
        """Change what stands above the window."""
        self._title = title
        if self._is_open():
            self._pygame.display.set_caption(title)

    def close(self) -> None:
        """Close the window, if there is one."""
        if self._is_open():
            self._pygame.display.quit()
        self._surface = None

    def _is_open(self) -> bool:
        """Whether it is on the screen: pygame has one window, which others may have taken."""
        shown = self._pygame.display.get_init() and self._pygame.display.get_surface()
        return self._surface is not None and shown is self._surface

    def _listen(self) -> None:
        """Empty the queue of events, of which only the wish to leave matters."""
        for event in self._pygame.event.get():
            self._is_left |= event.type == self._pygame.QUIT
