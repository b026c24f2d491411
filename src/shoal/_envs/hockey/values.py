"""Constants, modes and opponents of hockey, and their names."""

from __future__ import annotations

import math
from enum import Enum, IntEnum
from typing import Any

import numpy as np

from shoal.kernels._definition import Codec

__all__ = [
    "CENTER_X",
    "CENTER_Y",
    "CODECS",
    "FPS",
    "MAX_ANGLE",
    "MAX_TIME_KEEP_PUCK",
    "SCALE",
    "VIEWPORT_H",
    "VIEWPORT_W",
    "WITHOUT_KEEP_MODE",
    "H",
    "Mode",
    "W",
    "read_mode",
    "read_options",
]

# Names and units (pixels, metres) as in the reference implementation.
FPS = 50
SCALE = 60.0
VIEWPORT_W, VIEWPORT_H = 600, 480
W, H = VIEWPORT_W / SCALE, VIEWPORT_H / SCALE
CENTER_X, CENTER_Y = W / 2, H / 2
MAX_ANGLE = math.pi / 3
MAX_TIME_KEEP_PUCK = 15


class Mode(IntEnum):
    """The kind of episode.

    NORMAL is a match: the players begin at their places and start alternately. In the training
    modes the second player has a random position; in TRAIN_SHOOTING the puck lies in front of the
    first player, in TRAIN_DEFENSE it is shot at the first player's goal.
    """

    NORMAL = 0
    TRAIN_SHOOTING = 1
    TRAIN_DEFENSE = 2

    __str__ = Enum.__str__


_OPPONENTS = (None, "weak", "strong")


def read_mode(value: Any) -> Mode:
    """Convert a mode, its name or its number to a mode.

    >>> read_mode("TRAIN_SHOOTING")
    <Mode.TRAIN_SHOOTING: 1>
    """
    if isinstance(value, str) and value in Mode.__members__:
        return Mode[value]
    is_number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if is_number and 0 <= value < len(Mode):
        return Mode(int(value))
    names = ", ".join(Mode.__members__)
    raise ValueError(f"mode must be one of {names}, or its number, got {value!r}{_hint(value)}")


def _hint(value: Any) -> str:
    is_many = isinstance(value, list | tuple | np.ndarray)
    return "; set_attr accepts a list with a value for each slot" if is_many else ""


def _read_opponent(value: Any) -> float:
    if isinstance(value, str | None) and value in _OPPONENTS:
        return float(_OPPONENTS.index(value))
    raise ValueError(f"opponent must be 'weak', 'strong' or None, got {value!r}{_hint(value)}")


def _read_flag(name: str, value: Any) -> float:
    if isinstance(value, bool | np.bool_) or (isinstance(value, int) and value in (0, 1)):
        return float(value)
    raise ValueError(f"{name} must be True or False, got {value!r}{_hint(value)}")


CODECS = {
    "mode": Codec(lambda value: float(read_mode(value)), lambda number: Mode(int(number))),
    "opponent": Codec(_read_opponent, lambda number: _OPPONENTS[int(number)]),
    "keep_mode": Codec(lambda value: _read_flag("keep_mode", value), bool),
}
"""The conversions between kernel parameters and the values that users see."""


def _read_no_keep_mode(value: Any) -> float:
    if _read_flag("keep_mode", value):
        raise ValueError("keep_mode cannot be enabled: the action space has no shoot action")
    return 0.0


WITHOUT_KEEP_MODE = {**CODECS, "keep_mode": Codec(_read_no_keep_mode, bool)}
"""The conversions for kernels whose action space has no shoot action."""


def read_options(options: dict[str, Any], defaults: dict[str, float]) -> list[float]:
    """Read the reset options: ``mode``, for this episode only, and ``one_starting``."""
    unknown = [name for name in options if name not in defaults]
    if unknown:
        raise ValueError(
            f"hockey has no reset option {unknown[0]!r}; available: {', '.join(defaults)}"
        )
    mode, one_starting = options.get("mode"), options.get("one_starting")
    return [
        defaults["mode"] if mode is None else float(read_mode(mode)),
        defaults["one_starting"]
        if one_starting is None
        else _read_flag("one_starting", one_starting),
    ]
