"""Atari games as single environments, for libraries without vectors of Atari games."""

from __future__ import annotations

from typing import Any

import gymnasium

from shoal._bench.workload import Environment

__all__ = ["make_preprocessed_game"]


def make_preprocessed_game(game_id: str, **settings: Any) -> Environment:
    """Create a game preprocessed as in ale-py's vectors: 4 gray frames of 84x84, frame skip 4.

    It is created by ``gymnasium.make``, which receives ``settings``, and Gymnasium's wrappers.
    """
    import ale_py
    from gymnasium.wrappers import AtariPreprocessing, FrameStackObservation

    gymnasium.register_envs(ale_py)
    env = gymnasium.make(game_id, frameskip=1, **settings)
    return FrameStackObservation(AtariPreprocessing(env), 4)
