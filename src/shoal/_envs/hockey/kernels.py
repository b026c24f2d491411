"""The hockey kernels."""

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
"""The number of elements in the observation of one player."""

METADATA = {"render_modes": ["rgb_array", "human"], "render_fps": FPS}


def make_kernel(
    players: Literal[1, 2] = 2,
    *,
    discrete: bool = False,
    mode: Mode | str | int = Mode.NORMAL,
    keep_mode: bool = True,
    opponent: str | None = None,
) -> Kernel:
    """Create a hockey kernel.

    Args:
        players: The number of players whose actions the caller provides. With 2, observations and
            infos contain both players.
        discrete: Whether an action is one of 8 choices: nothing, x-, x+, y-, y+, turn-, turn+,
            shoot. If False, it has 4 elements from -1 to 1: x, y, turn, and shoot (above 0.5).
        mode: The initial mode of every slot.
        keep_mode: Whether a racket holds the puck after catching it, until it shoots. If False,
            actions have no element or choice for shooting.
        opponent: A scripted second player, ``"weak"`` or ``"strong"``. If None, the second player
            follows the caller's actions, or stands still if ``players`` is 1.
    """
    if players not in (1, 2):
        raise ValueError(f"players must be 1 or 2, got {players!r}")
    can_keep = bool(CODECS["keep_mode"].read(keep_mode))
    numbers, choices = (4, 8) if can_keep else (3, 7)
    shape = (SEEN,) if players == 1 else (players, SEEN)
    action_space: spaces.Space[Any]
    if not discrete:
        action_space = spaces.Box(-1.0, 1.0, (players * numbers,), np.float32)
    elif players == 1:
        action_space = spaces.Discrete(choices)
    else:
        action_space = spaces.MultiDiscrete([choices] * players)
    name = "Hockey" if players == 2 else "HockeyOne"
    kind = "Discrete" if discrete else "" if can_keep else "WithoutShots"
    parameters: dict[str, Any] = {"mode": mode, "keep_mode": keep_mode, "opponent": opponent}
    return Kernel(
        _native.Kernel(name + kind),
        spaces.Box(-np.inf, np.inf, shape, np.float32),
        action_space,
        parameters={name: CODECS[name].read(value) for name, value in parameters.items()},
        codecs=CODECS if can_keep else WITHOUT_KEEP_MODE,
        metadata=dict(METADATA),
        check_nan=False,
        read_options=read_options,
        recipe=partial(make_kernel, players, discrete=discrete, **parameters),
    )
