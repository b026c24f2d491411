"""Atari games by their registered environment IDs."""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from shoal._envs.atari.construction import game_settings, with_current_names
from shoal._envs.atari.games import ale, game_name
from shoal._envs.atari.settings import GameSettings

__all__ = ["is_atari", "registered_games"]

_NAMESPACE = "ALE/"
_VECTOR_ENTRY_POINT = "ale_py.vector_env:AtariVectorEnv"


def is_atari(what: Any) -> bool:
    """Whether this is the ID or spec of a game for which ale-py registers a vector entry point.

    A spec with wrappers or a step limit does not qualify: ale-py's vectors support neither.

    >>> is_atari("ALE/Breakout-v5"), is_atari("BreakoutNoFrameskip-v4")
    (True, False)
    """
    if isinstance(what, EnvSpec):
        has_vector = what.vector_entry_point == _VECTOR_ENTRY_POINT
        return has_vector and not what.additional_wrappers and what.max_episode_steps is None
    return isinstance(what, str) and what.startswith(_NAMESPACE)


def registered_games(
    what: str | EnvSpec, num_envs: int, env_kwargs: dict[str, Any]
) -> list[GameSettings]:
    """Return the settings of each slot: the registered ones, overridden by ``env_kwargs``."""
    if isinstance(what, EnvSpec):
        spec = what
    else:
        ale()  # the import registers its games
        game_name(what)  # raises a more helpful error than gymnasium.spec
        spec = gymnasium.spec(what)
    registered, chosen = dict(spec.kwargs), dict(env_kwargs)
    games = chosen.pop("game", None), registered.pop("game", None), spec.id
    game = next(name for name in games if name is not None)
    settings = {**with_current_names(registered), **with_current_names(chosen)}
    return game_settings(game, num_envs, **settings)
