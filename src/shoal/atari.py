"""Atari games: ``ale_py.vector_env``, but faster, and with more to it.

For code that was written for ale-py, of this release or of earlier ones::

    from shoal.atari import AtariVectorEnv
    from shoal.atari import VectorAtariEnv

``shoal.make("ALE/Breakout-v5", num_envs=8)`` steps the same games behind the interface that all of
Shoal's vectors have. It takes the same settings, under both of their names, and begins with those
that the id stands for: actions are repeated with a probability of 0.25.

    >>> import shoal
    >>> envs = shoal.make("ALE/Pong-v5", num_envs=2, frame_skip=2, stack_num=1)
    >>> observations, infos = envs.reset(seed=0)
    >>> observations.shape
    (2, 1, 84, 84)
    >>> envs.get_action_meanings()
    ['NOOP', 'FIRE', 'RIGHT', 'LEFT', 'RIGHTFIRE', 'LEFTFIRE']
    >>> envs.close()

The emulator is ale-py's, which is not a part of Shoal: ``pip install "shoal[atari]"``.
"""

from shoal._envs.atari.game import SavedGame
from shoal._envs.atari.games import all_games as games
from shoal._envs.atari.vector import AtariVector, AtariVectorEnv, VectorAtariEnv

__all__ = ["AtariVector", "AtariVectorEnv", "SavedGame", "VectorAtariEnv", "games"]
