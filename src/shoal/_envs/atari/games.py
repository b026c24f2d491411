"""Names of games, and access to ale-py."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from types import ModuleType

from shoal.errors import MissingExtraError, UnknownGameError

__all__ = ["ale", "all_games", "game_name", "rom_path"]

# Games without a single-player mode. Loading one makes the emulator end the process.
_TWO_PLAYER_ONLY = frozenset({"combat", "joust", "maze_craze", "warlords"})


def ale() -> ModuleType:
    """Import ``ale_py``, or raise an error that explains how to install it."""
    try:
        import ale_py
    except ImportError as error:
        raise MissingExtraError('ale-py is not installed: pip install "shoal[atari]"') from error
    return ale_py


@cache
def all_games() -> tuple[str, ...]:
    """Return the names of all games with a single-player mode, in alphabetical order."""
    ale()
    from ale_py import roms

    return tuple(sorted(set(roms.get_all_rom_ids()) - _TWO_PLAYER_ONLY))


def game_name(name: str) -> str:
    """Convert any common spelling of a game's name to ale-py's spelling.

    >>> game_name("MsPacman"), game_name("ms_pacman"), game_name("ALE/MsPacman-v5")
    ('ms_pacman', 'ms_pacman', 'ms_pacman')
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a game must be a string, got {name!r}")
    normalized = _normalized(name.removeprefix("ALE/").split("-v")[0])
    known = {_normalized(game): game for game in all_games()}
    if normalized in known:
        return known[normalized]
    if normalized in map(_normalized, _TWO_PLAYER_ONLY):
        raise UnknownGameError(f"{name!r} has no single-player mode")
    matches = [known[match] for match in get_close_matches(normalized, known, n=3)]
    hint = (
        f"did you mean {' or '.join(map(repr, matches))}?" if matches else "see shoal.atari.games()"
    )
    raise UnknownGameError(f"there is no Atari game {name!r}: {hint}")


def rom_path(game: str) -> str:
    """Return the path of a game's ROM."""
    ale()
    from ale_py import roms

    return str(roms.get_rom_path(game))


def _normalized(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
