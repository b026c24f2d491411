"""Image functions of the Atari preprocessing.

>>> import numpy as np
>>> area_resize(np.full((210, 160), 7, np.uint8), (84, 84)).shape
(84, 84)
"""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Any, get_args

import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal._envs.atari.frame_painter import painter
from shoal._envs.atari.palettes import Signal, signal_of

__all__ = ["area_resize", "atari_preprocess"]

Pixels = npt.NDArray[np.uint8]


def area_resize(image: Pixels, size: tuple[int, int], out: Pixels | None = None) -> Pixels:
    """Resize an image as ``cv2.resize(..., interpolation=cv2.INTER_AREA)`` does, bit for bit.

    Args:
        image: (height, width) or (height, width, channels), of any size, uint8.
        size: (height, width) of the result. OpenCV's order is (width, height).
        out: Array for the result, instead of a new one.
    """
    source = _pixels(image)
    if source.ndim not in (2, 3) or 0 in source.shape:
        raise ValueError(
            f"expected an image (height, width) or (height, width, channels), got {source.shape}"
        )
    target = _target((*_checked_size(size), *source.shape[2:]), out)
    _native.resize_area(np.ascontiguousarray(source), target)
    return target


def atari_preprocess(
    screen: Pixels,
    previous: Pixels | None = None,
    *,
    size: tuple[int, int] = (84, 84),
    grayscale: bool = True,
    signal: Signal | None = None,
    out: Pixels | None = None,
) -> Pixels:
    """Convert one or two Atari screens to an image: apply the palette, take the maximum, resize.

    Equal to ``getScreenGrayscale`` (or ``getScreenRGB``) of both frames, ``np.maximum`` and
    ``cv2.resize`` with INTER_AREA, but in one pass.

    Args:
        screen: The palette indices of the newest frame, as returned by ``ALEInterface.getScreen``.
        previous: The palette indices of the frame before, for the maximum of both.
        size: (height, width) of the image.
        grayscale: Whether the image is grey; otherwise it has the shape (height, width, 3).
        signal: The television signal, which determines the palette. By default it is inferred from
            the number of lines, which suffices for all games of ale-py.
        out: Array for the image, instead of a new one.

    >>> atari_preprocess(np.zeros((210, 160), np.uint8)).shape
    (84, 84)
    """
    newest = np.ascontiguousarray(_pixels(screen))
    if newest.ndim != 2 or 0 in newest.shape:
        raise ValueError(f"expected a screen (height, width), got {newest.shape}")
    older = None if previous is None else np.ascontiguousarray(_pixels(previous))
    if older is not None and older.shape != newest.shape:
        raise ValueError(f"both screens must have the same size, got {newest.shape}, {older.shape}")
    height, width = _checked_size(size)
    target = _target((height, width) if grayscale else (height, width, 3), out)
    used_signal = signal_of(newest.shape[0]) if signal is None else signal
    if used_signal not in get_args(Signal):
        raise ValueError(f"signal must be one of {get_args(Signal)}, got {signal!r}")
    mode = "grayscale" if grayscale else "rgb"
    _painter(used_signal, mode, newest.shape, (height, width)).paint(newest, older, target)
    return target


_painter = lru_cache(maxsize=8)(painter)


def _pixels(image: Any) -> Pixels:
    pixels = np.asarray(image)
    if pixels.dtype != np.uint8:
        raise TypeError(f"expected uint8 pixels, got {pixels.dtype}")
    return pixels


def _checked_size(size: tuple[int, int]) -> tuple[int, int]:
    height, width = map(index, size)
    if height < 1 or width < 1:
        raise ValueError(f"size must be (height, width), both positive, got {size}")
    return height, width


def _target(shape: tuple[int, ...], out: Pixels | None) -> Pixels:
    if out is None:
        return np.empty(shape, np.uint8)
    fits = isinstance(out, np.ndarray) and out.shape == shape and out.dtype == np.uint8
    if not fits or not out.flags.c_contiguous:
        raise ValueError(f"out must be a contiguous uint8 array of shape {shape}")
    return out
