"""Laser hockey: two players, one puck.

For one match, with the interface of the reference environment::

    from shoal.hockey import BasicOpponent, HockeyEnv, HockeyEnv_BasicOpponent, Mode

For many matches, ``shoal.make("shoal/Hockey-v0", num_envs=...)``, in which both players act and
observe, or ``"shoal/HockeyOne-v0"``, which plays against a scripted opponent; with actions that are
a choice of eight, ``"shoal/HockeyDiscrete-v0"`` and ``"shoal/HockeyOneDiscrete-v0"``. Mode,
opponent and keep mode are those of each slot, and count from its next reset on:

    >>> import shoal
    >>> envs = shoal.make("shoal/HockeyOne-v0", num_envs=3, mode="NORMAL", opponent="weak")
    >>> envs.set_attr("mode", ["NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE"])
    >>> envs.set_attr("opponent", ["weak", None, "strong"])
    >>> observations, infos = envs.reset(seed=0)
    >>> envs.get_attr("opponent")
    ('weak', None, 'strong')
    >>> envs.close()
"""

from shoal.envs.hockey.env import HockeyEnv, HockeyEnv_BasicOpponent
from shoal.envs.hockey.human import HumanOpponent
from shoal.envs.hockey.opponents import BasicOpponent, BasicOpponents
from shoal.envs.hockey.values import (
    CENTER_X,
    CENTER_Y,
    FPS,
    MAX_ANGLE,
    MAX_TIME_KEEP_PUCK,
    SCALE,
    VIEWPORT_H,
    VIEWPORT_W,
    H,
    Mode,
    W,
)

__all__ = [
    "CENTER_X",
    "CENTER_Y",
    "FPS",
    "MAX_ANGLE",
    "MAX_TIME_KEEP_PUCK",
    "SCALE",
    "VIEWPORT_H",
    "VIEWPORT_W",
    "BasicOpponent",
    "BasicOpponents",
    "H",
    "HockeyEnv",
    "HockeyEnv_BasicOpponent",
    "HumanOpponent",
    "Mode",
    "W",
]
