"""Atari games as single environments, for those who cannot step them as vectors of their own."""

from __future__ import annotations

from typing import Any

import gymnasium

from shoal._bench.workload import Environment

__all__ = ["make_preprocessed_game"]


def make_preprocessed_game(game_id: str, **settings: Any) -> Environment:
    """Make a game as ale-py's vectors have it: four grey frames of 84 by 84, every fourth shown.

    Made by ``gymnasium.make``, which is given the settings, and by Gymnasium's usual wrappers.
    """
    import ale_py
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    gymnasium.register_envs(ale_py)
    env = gymnasium.make(game_id, frameskip=1, **settings)
    return FrameStackObservation(AtariPreprocessing(env), 4)
