"""Games by the names that ale-py has registered them under."""

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
    """Whether this is the id, or the spec, of a game that ale-py makes vectors of itself.

    A spec with wrappers or a limit of steps is of an environment of Gymnasium's own.

    >>> is_atari("ALE/Breakout-v5"), is_atari("BreakoutNoFrameskip-v4")
    (True, False)
    """
    if isinstance(what, EnvSpec):
        is_theirs = what.vector_entry_point == _VECTOR_ENTRY_POINT
        return is_theirs and not what.additional_wrappers and what.max_episode_steps is None
    return isinstance(what, str) and what.startswith(_NAMESPACE)


def registered_games(
    what: str | EnvSpec, num_envs: int, env_kwargs: dict[str, Any]
) -> list[GameSettings]:
    """The settings of each slot: those that are registered, unless others are given."""
    if isinstance(what, EnvSpec):
        spec = what
    else:
        ale()  # which registers its games
        game_name(what)  # which knows better what is wrong with a name
        spec = gymnasium.spec(what)
    registered, given = dict(spec.kwargs), dict(env_kwargs)
    games = given.pop("game", None), registered.pop("game", None), spec.id
    game = next(name for name in games if name is not None)
    settings = {**with_current_names(registered), **with_current_names(given)}
    return game_settings(game, num_envs, **settings)
