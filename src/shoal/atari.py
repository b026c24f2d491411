"""Atari games: a faster ``ale_py.vector_env``.

The names of ale-py's current and earlier releases::

    from shoal.atari import AtariVectorEnv
    from shoal.atari import VectorAtariEnv

``shoal.make("ALE/Breakout-v5", num_envs=8)`` steps the same games with the interface of all of
Shoal's vectors. It accepts the same settings, by the names of either release. Its defaults are
those of the registered id, so actions are repeated with a probability of 0.25.

    >>> import shoal
    >>> envs = shoal.make("ALE/Pong-v5", num_envs=2, frame_skip=2, stack_num=1)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations.shape
    (2, 1, 84, 84)
    >>> envs.get_action_meanings()
    ['NOOP', 'FIRE', 'RIGHT', 'LEFT', 'RIGHTFIRE', 'LEFTFIRE']
    >>> envs.close()

The emulator is that of ale-py, an extra: ``pip install "shoal[atari]"``.
"""

from shoal._envs.atari.game import SavedGame
from shoal._envs.atari.games import all_games as games
from shoal._envs.atari.vector import AtariVector, AtariVectorEnv, VectorAtariEnv

__all__ = ["AtariVector", "AtariVectorEnv", "SavedGame", "VectorAtariEnv", "games"]
