"""Frames of the slots: captured by the stepping thread, read by other threads."""

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

_MAX_TILES = 16
_TILE_SIDE, _FOCUS_SIDE = 200, 480
"""The maximum width and height in pixels of a tile, and of the focused slot."""

_MIN_SIDE = 16
"""Smaller arrays of bytes are not treated as images."""

_WATCHED_FOR = 3.0
"""Seconds after the last request for which frames count as watched."""

_MAX_BUDGET = 0.05
"""Seconds of rendering that can be saved up, in addition to the cost of one frame."""

_MAX_PAUSE = 0.1
"""Seconds between batches that count as stepping time, in addition to the batch itself."""

_MAX_CRASHES = 3
"""Workers that may crash while rendering before capturing stops."""


class Frame(NamedTuple):
    """An image of a slot."""

    slot: int
    version: int
    pixels: Pixels


class FrameStore:
    """The newest frame of each tile. Thread-safe.

    Args:
        num_envs: The number of slots; at most 16 of them are tiles.
    """

    def __init__(self, num_envs: int) -> None:
        count = min(num_envs, _MAX_TILES)
        self.tiles = [round(place * (num_envs - 1) / max(1, count - 1)) for place in range(count)]
        self.num_slots = num_envs
        self.unavailable: str | None = None
        """The reason why there are no frames; None if frames can be captured."""
        self.focus: int | None = None
        """The slot that is captured more often and at a larger size."""
        self.version = 0
        self._lock = threading.Lock()
        self._frames: dict[int, Frame] = {}
        self._last_request = float("-inf")
        self._times: deque[float] = deque(maxlen=64)

    @property
    def is_watched(self) -> bool:
        """Whether frames were requested recently."""
        return time.monotonic() - self._last_request < _WATCHED_FOR

    def put(self, slot: int, pixels: Pixels) -> None:
        """Replace the slot's frame."""
        with self._lock:
            self.version += 1
            self._frames[slot] = Frame(slot, self.version, pixels)
            self._times.append(time.monotonic())

    def newer(self, version: int, only: int | None = None) -> list[Frame]:
        """Return frames newer than a version, of all tiles or one. Marks the frames as watched."""
        with self._lock:
            self._last_request = time.monotonic()
            return [
                frame
                for slot, frame in sorted(self._frames.items())
                if frame.version > version and only in (None, slot)
            ]

    def as_dict(self) -> dict[str, Any]:
        """Return the state of the frames as plain data."""
        with self._lock:
            now = time.monotonic()
            recent = [moment for moment in self._times if now - moment < _WATCHED_FOR]
            return {
                "version": self.version,
                "unavailable": self.unavailable,
                "tiles": self.tiles,
                "num_slots": self.num_slots,
                "per_second": len(recent) / _WATCHED_FOR,
                "focus": self.focus,
            }


class FrameCapture:
    """Captures frames within a share of the stepping thread's time, while they are watched.

    Args:
        pool: The pool whose slots are rendered.
        frames: The store of the frames.
        share: The share of the stepping thread's time.
    """

    def __init__(self, pool: Pool, frames: FrameStore, share: float) -> None:
        self._pool, self._frames, self._share = pool, frames, share
        self._budget, self._last_call, self._cost = 0.0, time.perf_counter(), 0.0
        self._turn = self._crashes = 0
        self._source = _source(pool)
        if isinstance(self._source, str):
            frames.unavailable = self._source

    def capture(self, observations: Any, batch_seconds: float) -> None:
        """Capture as many frames as the time budget allows, between two steps.

        Args:
            observations: The newest batch of all slots.
            batch_seconds: The duration of that batch.

        Raises:
            Exception: An exception of the environment. Capturing has stopped.
        """
        start = time.perf_counter()
        earned = min(start - self._last_call, batch_seconds + _MAX_PAUSE) * self._share
        self._budget = min(self._budget + earned, _MAX_BUDGET + self._cost)
        self._last_call = start
        if isinstance(self._source, str) or not self._frames.is_watched:
            return
        for _ in range(len(self._frames.tiles)):
            if self._budget < self._cost:
                return
            self._capture_one(observations)

    def _capture_one(self, observations: Any) -> None:
        start = time.perf_counter()
        slot = self._next_slot()
        try:
            assert not isinstance(self._source, str)
            pixels = as_rgb_image(self._source(slot, observations))
            if pixels is None:
                raise ValueError(f"slot {slot}: expected an image (uint8), e.g. height x width x 3")
        except Exception as error:
            if isinstance(error, WorkerCrashedError) and self._pool.restarts:
                self._crashes += 1
                if self._crashes < _MAX_CRASHES:
                    return  # the next batch reports the crash, from a restarted worker
            self._source = self._frames.unavailable = f"rendering failed: {error!r}"
            raise
        side = _FOCUS_SIDE if slot == self._frames.focus else _TILE_SIDE
        self._frames.put(slot, _shrunk(pixels, side))
        spent = time.perf_counter() - start
        self._budget -= spent
        self._cost = spent if not self._cost else 0.7 * self._cost + 0.3 * spent

    def _next_slot(self) -> int:
        self._turn += 1
        tiles, focus = self._frames.tiles, self._frames.focus
        if focus is not None and self._turn % 4:
            return focus
        turn = self._turn if focus is None else self._turn // 4
        return tiles[turn % len(tiles)]


_Source = Callable[[int, Any], Any]


def _source(pool: Pool) -> _Source | str:
    """Return a function that renders a slot, or the reason why there is none."""
    if isinstance(pool, KernelPool) and pool.kernel.draws:
        return lambda slot, _: pool.draw([slot])[0]
    if pool.render_mode == "rgb_array":
        return lambda slot, _: pool.call("render", slots=[slot])[0]
    space = pool.spaces.single_observation
    if isinstance(space, Box) and as_rgb_image(np.zeros(space.shape, space.dtype)) is not None:
        return lambda slot, observations: observations[slot]
    return "create the vector with render_mode='rgb_array' to see its environments"


def as_rgb_image(array: Any) -> Pixels | None:
    """Return an array as an image (height, width, 3), or None if it is not an image.

    Of stacked frames the newest one is returned, whichever axis they are stacked along.

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
    if pixels.ndim != 3 or min(pixels.shape[:2]) < _MIN_SIDE:
        return None
    return pixels


def _shrunk(pixels: Pixels, side: int) -> Pixels:
    """Return a copy of the image whose width and height are at most ``side``."""
    height, width = pixels.shape[:2]
    if max(height, width) <= side:
        return np.array(pixels, order="C")
    scale = side / max(height, width)
    size = max(1, round(height * scale)), max(1, round(width * scale))
    return area_resize(np.ascontiguousarray(pixels), size)
