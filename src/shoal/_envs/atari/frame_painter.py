"""Conversion of two emulator screens to one frame."""

from __future__ import annotations

from functools import cache
from typing import Literal

import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal._envs.atari.palettes import Signal, greys, reds_greens_blues

__all__ = ["Colours", "merging_tables", "painter"]

Colours = Literal["grayscale", "rgb"]


def painter(
    signal: Signal, colours: Colours, screen: tuple[int, int], size: tuple[int, int]
) -> _native.ScreenPainter:
    """Create a painter for frames of this size."""
    return _native.ScreenPainter(screen, size, merging_tables(signal, colours))


@cache
def merging_tables(signal: Signal, colours: Colours) -> npt.NDArray[np.uint8]:
    """Return lookup tables for merging two colour indices, of shape (channels, 256, 256).

    The result is the maximum in each channel, because flickering sprites appear in only one of two
    consecutive frames.
    """
    values = greys(signal)[:, None] if colours == "grayscale" else reds_greens_blues(signal)
    tables = np.stack([np.maximum.outer(channel, channel) for channel in values.T])
    tables.flags.writeable = False
    return tables
