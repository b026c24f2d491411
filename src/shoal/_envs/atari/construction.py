"""Conversion of a vector's arguments to game settings and a pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode

from shoal._envs.atari.cartridge import shared_cartridge
from shoal._envs.atari.games import game_name
from shoal._envs.atari.info_packing import AtariPool, packed_games
from shoal._envs.atari.settings import GameSettings
from shoal.errors import InvalidSettingError
from shoal.pools import InlinePool, Pool, ProcessPool
from shoal.pools._restart_policy import OnCrash
from shoal.pools._shares import available_cores

__all__ = ["atari_pool", "game_settings", "with_current_names"]

PerSlot = int | Sequence[int | None] | None

_OLD_NAMES = {
    "frame_skip": "frameskip",
    "fire_reset": "use_fire_reset",
    "max_episode_steps": "max_num_frames_per_episode",
}


def with_current_names(settings: dict[str, Any]) -> dict[str, Any]:
    """Rename settings to their names in ale-py 0.12.

    >>> with_current_names({"frame_skip": 2, "stack_num": 1, "grayscale": False})
    {'frameskip': 2, 'stack_num': 1, 'obs_type': 'rgb'}
    """
    named: dict[str, Any] = {}
    for name, value in settings.items():
        current = _OLD_NAMES.get(name, name)
        if current == "grayscale":
            current, value = "obs_type", "grayscale" if value else "rgb"
            if settings.get("obs_type") is not None:
                continue
        if current == "obs_type" and value is None:
            continue
        if current in named:
            raise TypeError(
                f"{name} and {current} are two names of one setting, pass only one of them"
            )
        named[current] = value
    known = {field.name for field in fields(GameSettings)}
    for name in named.keys() - known:
        raise TypeError(
            f"Atari games have no setting {name!r}, only {', '.join(sorted(known - {'game'}))}"
        )
    return named


def game_settings(
    game: str | Sequence[str],
    num_envs: int | None,
    mode: PerSlot = None,
    difficulty: PerSlot = None,
    **settings: Any,
) -> list[GameSettings]:
    """Return the validated settings of each slot."""
    if isinstance(game, str):
        names = [game] * (1 if num_envs is None else _count(num_envs))
    elif isinstance(game, Sequence):
        names = list(game)
    else:
        raise TypeError(f"game must be a string or a sequence of strings, got {game!r}")
    if not names:
        raise InvalidSettingError("a vector needs at least one game, got an empty sequence")
    if num_envs is not None and len(names) != _count(num_envs):
        raise InvalidSettingError(f"num_envs is {num_envs}, but there are {len(names)} games")
    known = {name: game_name(name) for name in dict.fromkeys(names)}
    modes = _for_each_slot("mode", mode, len(names))
    difficulties = _for_each_slot("difficulty", difficulty, len(names))
    games = [
        GameSettings(known[name], slot_mode, slot_difficulty, **settings)
        for name, slot_mode, slot_difficulty in zip(names, modes, difficulties, strict=True)
    ]
    return _with_common_actions(games)


def _with_common_actions(games: list[GameSettings]) -> list[GameSettings]:
    """Select the full action space for games with different minimal action sets."""
    names = {settings.game for settings in games}
    if len(names) == 1 or games[0].full_action_space or games[0].continuous:
        return games
    cartridges = {name: shared_cartridge(name, None, None) for name in sorted(names)}
    if len({tuple(cartridge.minimal_actions) for cartridge in cartridges.values()}) == 1:
        return games
    counts = {name: len(cartridge.legal_actions) for name, cartridge in cartridges.items()}
    if len(set(counts.values())) > 1:
        raise InvalidSettingError(
            "the full action spaces of these games have different sizes: "
            + ", ".join(f"{count} ({name})" for name, count in counts.items())
        )
    return [replace(settings, full_action_space=True) for settings in games]


def _for_each_slot(name: str, value: PerSlot, count: int) -> list[int | None]:
    if value is None or not isinstance(value, Sequence | np.ndarray):
        return [value] * count
    values = list(value)
    if len(values) != count:
        raise InvalidSettingError(f"got {len(values)} values of {name} for {count} slots")
    return values


def _count(num_envs: Any) -> int:
    if isinstance(num_envs, bool) or not hasattr(num_envs, "__index__") or num_envs < 1:
        raise InvalidSettingError(f"num_envs must be a positive integer, got {num_envs!r}")
    return int(num_envs.__index__())


def atari_pool(
    games: Sequence[GameSettings],
    *,
    processes: int | None = None,
    caller_works: bool = True,
    cores: list[int] | None = None,
    autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
    copy: bool = True,
    statistics: bool = False,
    render_mode: str | None = None,
    on_crash: OnCrash = "raise",
    step_timeout: float | None = None,
) -> AtariPool:
    """Create the pool that steps these games, in processes because the emulator holds the GIL.

    Args:
        games: The settings of each slot.
        processes: The number of processes that step games, including the calling one if
            ``caller_works``. Defaults to the number of cores.
        caller_works: Whether the calling process steps some of the games.
        cores: The cores that worker processes are bound to, in order.
        autoreset_mode: When a slot is reset after its episode has ended.
        copy: Whether batches are new arrays instead of views that stay valid until the batch after
            next.
        statistics: Whether to report the return, length and duration of finished episodes.
        render_mode: ``"rgb_array"`` or None.
        on_crash: What happens if a worker process dies; see :class:`AtariVectorEnv`.
        step_timeout: The number of seconds after which a game that does not respond counts as
            crashed.
    """
    common: dict[str, Any] = {
        "autoreset_mode": autoreset_mode,
        "copy": copy,
        "statistics": statistics,
    }
    factories = packed_games(games, render_mode)
    drivers = min(len(games), available_cores() if processes is None else processes)
    pool: Pool
    if drivers == 1 and caller_works:
        pool = InlinePool(factories, **common)
    else:
        pool = ProcessPool(
            factories,
            workers=drivers - caller_works,
            caller_works=caller_works,
            pin=False if cores is None else cores,
            on_crash=on_crash,
            step_timeout=step_timeout,
            stand_ins=False,
            **common,
        )
    return AtariPool(pool, games)
