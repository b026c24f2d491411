"""Laser hockey: two players, one puck.

For one match, with the interface of the reference environment::

    from shoal.hockey import BasicOpponent, HockeyEnv, HockeyEnv_BasicOpponent, Mode

For many matches, ``shoal.make`` (or ``gymnasium.make_vec``; ``gymnasium.make`` for one of them):

| name | actions of one match | who plays |
| --- | --- | --- |
| ``shoal/Hockey-v0`` | 8 numbers | both players; both observe: (num_envs, 2, 18) |
| ``shoal/HockeyDiscrete-v0`` | 2 choices of 8 | the same |
| ``shoal/HockeyOne-v0`` | 4 numbers | the first one; the second is scripted, strong by default |
| ``shoal/HockeyOneDiscrete-v0`` | one choice of 8 | the same |

An action is x, y, turn, each from -1 to 1, and shoot where it is above 0.5. The choices are
nothing, x-, x+, y-, y+, turn-, turn+, shoot. A player sees 18 numbers, in a frame in which it
plays from left to right and the centre is (0, 0): its own x, y, angle, vx, vy and angular
velocity, the same of the other one, x, y, vx, vy of the puck, and for how many steps it and the
other one may still keep the puck. The reward is 10 for a goal, -10 for one of the other, and less
than nothing for being far from a puck that comes: 0.0576 a metre in a match, 0.18 in training.
Infos have ``winner`` (1, 0, -1), ``reward_closeness_to_puck``, ``reward_touch_puck`` and
``reward_puck_direction``; where both act, they are (num_envs, 2), for both, as is ``rewards``.
What a step returns as rewards, and statistics, are the first player's. A match is truncated after
251 steps, in training after 81.

Arguments are ``mode`` (see :class:`Mode`), ``keep_mode`` (True: a racket keeps a puck that it
catches, and shoots it; without, actions have no part for that) and ``opponent``: ``"weak"``,
``"strong"``, or None for one who stands still, or, in ``shoal/Hockey-v0``, for your own: a
scripted one acts in the place of your second player. All three are those of each slot, and count
from its next reset on. A reset takes the options ``mode``, for one episode, and ``one_starting``;
players start in turns, the first one after a seed by chance.

    >>> import shoal
    >>> envs = shoal.make("shoal/HockeyOne-v0", num_envs=3, opponent="weak")
    >>> envs.set_attr("mode", ["NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE"])
    >>> envs.set_attr("opponent", ["weak", None, "strong"])
    >>> observations, infos = envs.reset(seed=0)
    >>> envs.get_attr("opponent")
    ('weak', None, 'strong')
    >>> envs.close()

``envs.state`` has for each slot ``observation`` (what the first player sees), ``puck_spin``,
``time``, ``winner``, ``shot`` (a velocity that the puck gets in the next step) and ``touching`` (a
bit for each racket that the puck touched in the last one).
"""

from shoal._envs.hockey.env import HockeyEnv, HockeyEnv_BasicOpponent
from shoal._envs.hockey.human_player import HumanOpponent
from shoal._envs.hockey.opponents import BasicOpponent, BasicOpponents
from shoal._envs.hockey.values import (
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
