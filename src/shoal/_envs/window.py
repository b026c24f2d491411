"""A pygame window that shows images."""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import DependencyNotInstalled

__all__ = ["Window", "import_pygame"]

_OFFSCREEN_DRIVERS = ("dummy", "offscreen")
"""SDL video drivers that show nothing. SDL selects them if there is no display."""


def import_pygame() -> ModuleType:
    """Import pygame, or raise an error that explains how to install it."""
    try:
        import pygame
    except ImportError as error:
        raise DependencyNotInstalled(
            'pygame is not installed: pip install "shoal[human]"'
        ) from error
    return pygame


class Window:
    """A window that opens with its first image.

    Args:
        title: The window title.
        frames_per_second: The maximum number of images shown per second.
    """

    def __init__(self, title: str, frames_per_second: int) -> None:
        self._title, self._frames_per_second = title, frames_per_second
        self._pygame = import_pygame()
        self._surface: Any = None
        self._clock: Any = None
        self._is_closed = False

    def show(self, image: npt.NDArray[np.uint8]) -> None:
        """Show an image of shape (height, width, 3), after waiting for the frame interval."""
        pygame = self._pygame
        height, width = image.shape[:2]
        if not self._is_open():
            pygame.display.init()
            pygame.display.set_caption(self._title)
            self._surface = pygame.display.set_mode((width, height))
            if (
                pygame.display.get_driver() in _OFFSCREEN_DRIVERS
                and "SDL_VIDEODRIVER" not in os.environ
            ):
                self.close()
                raise RuntimeError("there is no display to open a window on")
            self._clock = pygame.time.Clock()
        # pygame arrays have the width first.
        surface = pygame.surfarray.make_surface(image.swapaxes(0, 1))
        self._surface.blit(surface, (0, 0))
        self._poll_events()
        pygame.display.flip()
        self._clock.tick(self._frames_per_second)

    def is_pressed(self, *names: str) -> bool:
        """Whether one of these keys is held down; keys have pygame's names."""
        if not self._is_open():
            return False
        self._poll_events()
        pressed = self._pygame.key.get_pressed()
        return any(pressed[self._pygame.key.key_code(name)] for name in names)

    def is_closed(self) -> bool:
        """Whether the user has clicked the close button or pressed the escape key."""
        self._is_closed |= self.is_pressed("escape")
        return self._is_closed

    def set_title(self, title: str) -> None:
        """Change the window title."""
        self._title = title
        if self._is_open():
            self._pygame.display.set_caption(title)

    def close(self) -> None:
        """Close the window if it is open."""
        if self._is_open():
            self._pygame.display.quit()
        self._surface = None

    def _is_open(self) -> bool:
        """Whether this window is on the screen; pygame has one window, which others may replace."""
        surface = self._pygame.display.get_init() and self._pygame.display.get_surface()
        return self._surface is not None and surface is self._surface

    def _poll_events(self) -> None:
        """Empty the event queue; only close events matter."""
        for event in self._pygame.event.get():
            self._is_closed |= event.type == self._pygame.QUIT
