"""Pictures of the slots: taken by the thread that steps, kept for those who look."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box

from shoal.errors import WorkerCrashedError
from shoal.image import area_resize
from shoal.pools import KernelPool, Pool

__all__ = ["Frame", "FrameCapture", "FrameStore", "as_rgb_image"]

Pixels = npt.NDArray[np.uint8]

_TILES = 16
_TILE_SIDE, _FOCUS_SIDE = 200, 480
"""The most pixels of a side: of a tile, and of the one that is looked at."""

_LEAST_SIDE = 16
"""Smaller arrays of bytes are no pictures."""

_LOOKED_FOR = 3.0
"""Seconds after which somebody who has not asked again is held to be gone."""

_MOST_SAVED = 0.05
"""Seconds of picture taking that can be saved up, besides those for one picture."""

_PAUSE = 0.1
"""Seconds without a batch that count as time of stepping, besides those of the batch itself."""


_MOST_CRASHES = 3
"""Workers that may be lost while they render: after so many it is no coincidence."""


class Frame(NamedTuple):
    """What a slot looked like."""

    slot: int
    version: int
    pixels: Pixels


class FrameStore:
    """The newest picture of each tile. Any thread may put and take.

    Args:
        num_envs: How many slots there are, of which some are tiles.
    """

    def __init__(self, num_envs: int) -> None:
        count = min(num_envs, _TILES)
        self.tiles = [round(place * (num_envs - 1) / max(1, count - 1)) for place in range(count)]
        self.shown_of = num_envs
        self.why_none: str | None = None
        """Why there cannot be pictures, if so."""
        self.focus: int | None = None
        """The slot that is looked at more than the others."""
        self.version = 0
        self._lock = threading.Lock()
        self._pictures: dict[int, Frame] = {}
        self._asked = float("-inf")
        self._taken: deque[float] = deque(maxlen=64)

    @property
    def is_visited(self) -> bool:
        """Whether somebody looks at pictures."""
        return time.monotonic() - self._asked < _LOOKED_FOR

    def put(self, slot: int, pixels: Pixels) -> None:
        """Show this in the place of the slot's picture before."""
        with self._lock:
            self.version += 1
            self._pictures[slot] = Frame(slot, self.version, pixels)
            self._taken.append(time.monotonic())

    def newer(self, version: int, only: int | None = None) -> list[Frame]:
        """The pictures after this version, of all tiles or of one; somebody looks at them."""
        with self._lock:
            self._asked = time.monotonic()
            return [
                picture
                for slot, picture in sorted(self._pictures.items())
                if picture.version > version and only in (None, slot)
            ]

    def told(self) -> dict[str, Any]:
        """Plain data about the pictures."""
        with self._lock:
            now = time.monotonic()
            late = [taken for taken in self._taken if now - taken < _LOOKED_FOR]
            return {
                "version": self.version,
                "why_none": self.why_none,
                "tiles": self.tiles,
                "shown_of": self.shown_of,
                "per_second": len(late) / _LOOKED_FOR,
                "focus": self.focus,
            }


class FrameCapture:
    """Takes pictures within a share of the time, while somebody looks.

    Args:
        pool: Whose slots are shown.
        frames: Where pictures go.
        share: Of the time of the thread that steps.
    """

    def __init__(self, pool: Pool, frames: FrameStore, share: float) -> None:
        self._pool, self._gallery, self._share = pool, frames, share
        self._saved, self._looked, self._cost = 0.0, time.perf_counter(), 0.0
        self._turn = self._crashes = 0
        self._source = _source(pool)
        if isinstance(self._source, str):
            frames.why_none = self._source

    def look(self, observations: Any, batch_seconds: float) -> None:
        """Take as many pictures as there is time for, between two steps.

        Args:
            observations: The newest batch, of all slots.
            batch_seconds: How long it took.

        Raises:
            Exception: What the environment raised. No picture is taken any more.
        """
        began = time.perf_counter()
        earned = min(began - self._looked, batch_seconds + _PAUSE) * self._share
        self._saved = min(self._saved + earned, _MOST_SAVED + self._cost)
        self._looked = began
        if isinstance(self._source, str) or not self._gallery.is_visited:
            return
        for _ in range(len(self._gallery.tiles)):
            if self._saved < self._cost:
                return
            self._take(observations)

    def _take(self, observations: Any) -> None:
        began = time.perf_counter()
        slot = self._next_slot()
        try:
            assert not isinstance(self._source, str)
            pixels = as_rgb_image(self._source(slot, observations))
            if pixels is None:
                raise ValueError(f"slot {slot}: what was rendered is no picture")
        except Exception as error:
            if isinstance(error, WorkerCrashedError) and self._pool.restarts:
                self._crashes += 1
                if self._crashes < _MOST_CRASHES:
                    return  # the next batch tells of it, and comes from another worker
            self._source = self._gallery.why_none = f"no pictures any more: {error!r}"
            raise
        side = _FOCUS_SIDE if slot == self._gallery.focus else _TILE_SIDE
        self._gallery.put(slot, _fitted(pixels, side))
        spent = time.perf_counter() - began
        self._saved -= spent
        self._cost = spent if not self._cost else 0.7 * self._cost + 0.3 * spent

    def _next_slot(self) -> int:
        self._turn += 1
        tiles, focus = self._gallery.tiles, self._gallery.focus
        if focus is not None and self._turn % 4:
            return focus
        turn = self._turn if focus is None else self._turn // 4
        return tiles[turn % len(tiles)]


_Source = Callable[[int, Any], Any]


def _source(pool: Pool) -> _Source | str:
    """What takes a picture of a slot, or why nothing can."""
    if isinstance(pool, KernelPool) and pool.kernel.draws:
        return lambda slot, _: pool.draw([slot])[0]
    if pool.render_mode == "rgb_array":
        return lambda slot, _: pool.call("render", slots=[slot])[0]
    space = pool.spaces.single_observation
    if isinstance(space, Box) and as_rgb_image(np.zeros(space.shape, space.dtype)) is not None:
        return lambda slot, observations: observations[slot]
    return "make the vector with render_mode='rgb_array' to see its environments"


def as_rgb_image(array: Any) -> Pixels | None:
    """An array as a picture (height, width, 3), None if it is none.

    Of a stack of frames it is the last one, wherever the frames are.

    >>> as_rgb_image(np.zeros((4, 84, 84), np.uint8)).shape
    (84, 84, 3)
    >>> as_rgb_image(np.zeros(84, np.uint8)) is None
    True
    """
    pixels = np.asarray(array)
    if pixels.dtype != np.uint8:
        return None
    if pixels.ndim == 4 and pixels.shape[-1] == 3:
        pixels = pixels[-1]
    if pixels.ndim == 3 and pixels.shape[-1] > 4 and pixels.shape[0] <= 4:
        pixels = np.moveaxis(pixels, 0, -1)
    if pixels.ndim == 3 and pixels.shape[-1] != 3:
        pixels = pixels[..., -1]
    if pixels.ndim == 2:
        pixels = np.repeat(pixels[..., None], 3, axis=-1)
    if pixels.ndim != 3 or min(pixels.shape[:2]) < _LEAST_SIDE:
        return None
    return pixels


def _fitted(pixels: Pixels, side: int) -> Pixels:
    """The picture, no larger than this in either direction, and in memory of its own."""
    height, width = pixels.shape[:2]
    if max(height, width) <= side:
        return np.array(pixels, order="C")
    scale = side / max(height, width)
    size = max(1, round(height * scale)), max(1, round(width * scale))
    return area_resize(np.ascontiguousarray(pixels), size)
