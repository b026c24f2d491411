"""What a user's own code has raised: in which slot, what, and where in the user's files."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable
from pathlib import Path

import gymnasium

import shoal
from shoal._error_description import RemoteTraceback, error_text
from shoal.errors import ConfigError

__all__ = ["describe_user_error"]

_MOST_PLACES = 3

_SOURCE = re.compile(r"^shoal: in (slot \d+|the policy)(?: of \d+)?(.*)$")
"""The notes that say whose an exception is."""

_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)
_FRAMES_BEGIN = "Traceback (most recent call last):\n"

_NOBODYS = [Path(package.__path__[0]) for package in (shoal, gymnasium)]
_LIBRARY = Path(traceback.__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}

_Frame = tuple[str, int, str]
"""A file, a line, and the function that it is in."""


def describe_user_error(error: Exception) -> str | None:
    """Tell of what came out of a user's environment, policy or file; None for anything else.

    >>> error = KeyError("wheel")
    >>> error.add_note("shoal: in slot 3 of 8, in its step")
    >>> describe_user_error(error)
    "slot 3, in its step: KeyError: 'wheel'"
    >>> describe_user_error(ValueError("--seconds must be a positive number, got 0"))
    """
    if isinstance(error, gymnasium.error.DependencyNotInstalled):
        return None
    cause = error.__cause__
    if isinstance(error, ConfigError) and isinstance(cause, Exception) and _own(_frames(cause)):
        return describe_user_error(cause)
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error)).rstrip()
    source = _source(error)
    here = _own(_frames(error), is_theirs=bool(source))
    places = here or _own(_remote_frames(error), is_theirs=bool(source))
    if not (source or places):
        return None
    said = error_text(error)
    if source or here:  # else it is Shoal that tells of what happened elsewhere
        kind = type(error).__name__
        said = ": ".join(part for part in (source, kind, said) if part)
    return "\n".join([said, *(f"  {place}" for place in places)])


def _source(error: Exception) -> str:
    """The slot and what was done there, or the policy; empty where no note says so."""
    matches = map(_SOURCE.match, getattr(error, "__notes__", ()))
    return next((match[1] + match[2] for match in matches if match), "")


def _frames(error: Exception) -> list[_Frame]:
    walked = traceback.walk_tb(error.__traceback__)
    return [(it.f_code.co_filename, line, it.f_code.co_name) for it, line in walked]


def _remote_frames(error: Exception) -> list[_Frame]:
    """Those of another process, whose traceback came along."""
    cause = error.__cause__
    told = str(cause) if isinstance(cause, RemoteTraceback) else ""
    # Before are those of the exceptions that this one came from.
    last = told.rpartition(_FRAMES_BEGIN)[2]
    return [(file, int(line), function) for file, line, function in _FRAME.findall(last)]


def _own(frames: Iterable[_Frame], *, is_theirs: bool = False) -> list[str]:
    """The last places in a user's files; of what is theirs, else those in what is installed."""
    by_them = [frame for frame in frames if _may_be_theirs(frame[0])]
    own = [frame for frame in by_them if _INSTALLED.isdisjoint(Path(frame[0]).parts)]
    chosen = own or (by_them if is_theirs else [])
    return [f"{_short(file)}:{line} in {name}" for file, line, name in chosen[-_MOST_PLACES:]]


def _may_be_theirs(file: str) -> bool:
    path = Path(file)
    if file.startswith("<") or any(path.is_relative_to(package) for package in _NOBODYS):
        return False
    return not path.is_relative_to(_LIBRARY) or not _INSTALLED.isdisjoint(path.parts)


def _short(file: str) -> str:
    path, here = Path(file), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
