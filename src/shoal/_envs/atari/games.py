"""The names of games, and where ale-py comes in."""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from types import ModuleType

from shoal.errors import MissingExtraError, UnknownGameError

__all__ = ["ale", "all_games", "game_name", "rom_path"]

# Two games or more on one cartridge, none of them for a single player: the emulator, asked to load
# one, ends the process.
_NOT_FOR_ONE = frozenset({"combat", "joust", "maze_craze", "warlords"})


def ale() -> ModuleType:
    """The module ``ale_py``, or an error that says how to get it."""
    try:
        import ale_py
    except ImportError as error:
        raise MissingExtraError(
            'Atari games need ale-py, which is not installed: pip install "shoal[atari]"'
        ) from error
    return ale_py


@cache
def all_games() -> tuple[str, ...]:
    """The names of all games that one player can play, in alphabetical order."""
    ale()
    from ale_py import roms

    return tuple(sorted(set(roms.get_all_rom_ids()) - _NOT_FOR_ONE))


def game_name(name: str) -> str:
    """The name of a game as ale-py spells it, from any common spelling.

    >>> game_name("MsPacman"), game_name("ms_pacman"), game_name("ALE/MsPacman-v5")
    ('ms_pacman', 'ms_pacman', 'ms_pacman')
    """
    if not isinstance(name, str):
        raise TypeError(f"a game's name must be a string, got {name!r}")
    plain = _plain(name.removeprefix("ALE/").split("-v")[0])
    known = {_plain(game): game for game in all_games()}
    if plain in known:
        return known[plain]
    if plain in map(_plain, _NOT_FOR_ONE):
        raise UnknownGameError(f"{name!r} has no mode for a single player")
    near = [known[match] for match in get_close_matches(plain, known, n=3)]
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else "see shoal.atari.games()"
    raise UnknownGameError(f"there is no Atari game {name!r}: {hint}")


def rom_path(game: str) -> str:
    """Where the program of a game lies."""
    ale()
    from ale_py import roms

    return str(roms.get_rom_path(game))


def _plain(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()
