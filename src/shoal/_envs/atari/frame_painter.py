"""How two screens of a game become one picture."""

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
    """What paints pictures of this size."""
    return _native.ScreenPainter(screen, size, merging_tables(signal, colours))


@cache
def merging_tables(signal: Signal, colours: Colours) -> npt.NDArray[np.uint8]:
    """What two colour numbers, the newer and the older, give: (channels, 256, 256).

    The brighter one in each channel: a sprite that flickers is seen in one of two frames.
    """
    values = greys(signal)[:, None] if colours == "grayscale" else reds_greens_blues(signal)
    tables = np.stack([np.maximum.outer(channel, channel) for channel in values.T])
    tables.flags.writeable = False
    return tables
