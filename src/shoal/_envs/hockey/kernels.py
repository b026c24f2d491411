"""Hockey as kernels."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from shoal import _native
from shoal._envs.hockey.values import CODECS, FPS, WITHOUT_KEEP_MODE, Mode, read_options
from shoal.kernels._definition import Kernel

__all__ = ["METADATA", "SEEN", "make_kernel"]

SEEN = 18
"""How many numbers a player observes."""

METADATA = {"render_modes": ["rgb_array", "human"], "render_fps": FPS}


def make_kernel(
    players: Literal[1, 2] = 2,
    *,
    discrete: bool = False,
    mode: Mode | str | int = Mode.NORMAL,
    keep_mode: bool = True,
    opponent: str | None = None,
) -> Kernel:
    """A kernel of hockey.

    Args:
        players: Who acts: both players, which both observe, or the first one only.
        discrete: Whether an action is one of 8 numbers: nothing, x-, x+, y-, y+, turn-, turn+,
            shoot. Else it is 4 numbers from -1 to 1: x, y, turn, and shoot where it is above 0.5.
        mode: What is played, until a slot's ``mode`` is set to something else.
        keep_mode: Whether a racket keeps a puck that it catches, to be shot. Where it does not,
            actions have no part for shooting.
        opponent: A scripted second player, ``"weak"`` or ``"strong"``, in the place of the user's
            or of one that stands still.
    """
    if players not in (1, 2):
        raise ValueError(f"players must be 1 or 2, got {players!r}")
    keeps = bool(CODECS["keep_mode"].read(keep_mode))
    numbers, choices = (4, 8) if keeps else (3, 7)
    shape = (SEEN,) if players == 1 else (players, SEEN)
    action_space: spaces.Space[Any]
    if not discrete:
        action_space = spaces.Box(-1.0, 1.0, (players * numbers,), np.float32)
    elif players == 1:
        action_space = spaces.Discrete(choices)
    else:
        action_space = spaces.MultiDiscrete([choices] * players)
    name = "Hockey" if players == 2 else "HockeyOne"
    kind = "Discrete" if discrete else "" if keeps else "WithoutShots"
    given: dict[str, Any] = {"mode": mode, "keep_mode": keep_mode, "opponent": opponent}
    return Kernel(
        _native.Kernel(name + kind),
        spaces.Box(-np.inf, np.inf, shape, np.float32),
        action_space,
        parameters={name: CODECS[name].read(value) for name, value in given.items()},
        codecs=CODECS if keeps else WITHOUT_KEEP_MODE,
        metadata=dict(METADATA),
        check_nan=False,
        read_options=read_options,
        recipe=partial(make_kernel, players, discrete=discrete, **given),
    )
