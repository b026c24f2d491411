"""Laser hockey: two players, one puck.

Single matches, with the interface of the reference environment::

    from shoal.hockey import BasicOpponent, HockeyEnv, HockeyEnv_BasicOpponent, Mode

Many matches, by ``shoal.make`` or ``gymnasium.make_vec`` (``gymnasium.make`` makes one):

| name | actions of one match | players |
| --- | --- | --- |
| ``shoal/Hockey-v0`` | 8 numbers | both; observations are (num_envs, 2, 18) |
| ``shoal/HockeyDiscrete-v0`` | 2 choices of 8 | both; observations are (num_envs, 2, 18) |
| ``shoal/HockeyOne-v0`` | 4 numbers | the first; the second is scripted, strong by default |
| ``shoal/HockeyOneDiscrete-v0`` | one choice of 8 | the first; the second is scripted |

Actions: x, y and turn, each from -1 to 1, and shoot, which triggers above 0.5. The discrete choices
are nothing, x-, x+, y-, y+, turn-, turn+, shoot.

Observations: 18 numbers per player, in a frame in which the player plays from left to right and
the centre is (0, 0): x, y, angle, vx, vy and angular velocity of the player, the same of the other
player, x, y, vx, vy of the puck, and the number of steps for which the player and the other player
may still keep the puck.

Rewards: 10 for a goal, -10 for a goal of the other player, and a penalty for the distance to an
approaching puck: 0.0576 per metre in a match, 0.18 in training. ``step`` returns the rewards of the
first player, and statistics are those of the first player.

Infos: ``winner`` (1, 0, -1), ``reward_closeness_to_puck``, ``reward_touch_puck`` and
``reward_puck_direction``. If both players act, these and ``rewards`` have the shape (num_envs, 2).
A match is truncated after 251 steps, in training after 81.

Arguments: ``mode`` (see :class:`Mode`), ``keep_mode`` (whether a racket keeps a puck that it
catches and can shoot it; if False, actions have no shoot component) and ``opponent``. The opponent
is ``"weak"``, ``"strong"`` or None. With None, the second player stands still or, in
``shoal/Hockey-v0``, follows the actions; a scripted opponent replaces it. All three can differ
between slots and take effect at the next reset of a slot. A reset takes the options ``mode``, for
one episode, and ``one_starting``. The players start in turns; after a seed, the first one is
random.

    >>> import shoal
    >>> envs = shoal.make("shoal/HockeyOne-v0", num_envs=3, opponent="weak")
    >>> envs.set_attr("mode", ["NORMAL", "TRAIN_SHOOTING", "TRAIN_DEFENSE"])
    >>> envs.set_attr("opponent", ["weak", None, "strong"])
    >>> observations, infos = envs.reset(seed=0)
    >>> envs.get_attr("opponent")
    ('weak', None, 'strong')
    >>> envs.close()

``envs.state`` has for each slot ``observation`` (of the first player), ``puck_spin``, ``time``,
``winner``, ``shot`` (the velocity that the puck gets in the next step) and ``touching`` (a bit for
each racket that touched the puck in the last step).
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
