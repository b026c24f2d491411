"""Descriptions of exceptions raised in a user's own code: the slot, the error, and the place."""

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

_MAX_PLACES = 3

_SOURCE = re.compile(r"^shoal: in (slot \d+|the policy)(?: of \d+)?(.*)$")
"""Matches the notes that name the source of an exception."""

_FRAME = re.compile(r'^  File "(.+)", line (\d+), in (.+)$', re.MULTILINE)
_FRAMES_BEGIN = "Traceback (most recent call last):\n"

_IGNORED_PACKAGES = [Path(package.__path__[0]) for package in (shoal, gymnasium)]
_LIBRARY = Path(traceback.__file__).parent
_INSTALLED = {"site-packages", "dist-packages"}

_Frame = tuple[str, int, str]
"""A file, a line number, and a function name."""


def describe_user_error(error: Exception) -> str | None:
    """Describe an exception from a user's environment, policy or file; None for any other.

    >>> error = KeyError("wheel")
    >>> error.add_note("shoal: in slot 3 of 8, in its step")
    >>> describe_user_error(error)
    "slot 3, in its step: KeyError: 'wheel'"
    >>> describe_user_error(ValueError("--seconds must be a positive number, got 0"))
    """
    if isinstance(error, gymnasium.error.DependencyNotInstalled):
        return None
    cause = error.__cause__
    if isinstance(error, ConfigError) and isinstance(cause, Exception) and _places(_frames(cause)):
        return describe_user_error(cause)
    if isinstance(error, SyntaxError):
        return "".join(traceback.format_exception_only(error)).rstrip()
    source = _source(error)
    local = _places(_frames(error), is_user_code=bool(source))
    places = local or _places(_remote_frames(error), is_user_code=bool(source))
    if not (source or places):
        return None
    text = error_text(error)
    if source or local:  # otherwise Shoal raised it, and its message names the original error
        kind = type(error).__name__
        text = ": ".join(part for part in (source, kind, text) if part)
    return "\n".join([text, *(f"  {place}" for place in places)])


def _source(error: Exception) -> str:
    """Return the slot and operation, or "the policy"; empty if no note names the source."""
    matches = map(_SOURCE.match, getattr(error, "__notes__", ()))
    return next((match[1] + match[2] for match in matches if match), "")


def _frames(error: Exception) -> list[_Frame]:
    walked = traceback.walk_tb(error.__traceback__)
    return [(frame.f_code.co_filename, line, frame.f_code.co_name) for frame, line in walked]


def _remote_frames(error: Exception) -> list[_Frame]:
    """Return the frames in another process, from the traceback that came with the exception."""
    cause = error.__cause__
    text = str(cause) if isinstance(cause, RemoteTraceback) else ""
    # Chained exceptions come first; the last traceback is that of this exception.
    last = text.rpartition(_FRAMES_BEGIN)[2]
    return [(file, int(line), function) for file, line, function in _FRAME.findall(last)]


def _places(frames: Iterable[_Frame], *, is_user_code: bool = False) -> list[str]:
    """Return the innermost places in the user's files.

    If there are none and ``is_user_code`` is set, return those in installed packages.
    """
    candidates = [frame for frame in frames if _may_be_user_code(frame[0])]
    own = [frame for frame in candidates if _INSTALLED.isdisjoint(Path(frame[0]).parts)]
    chosen = own or (candidates if is_user_code else [])
    return [f"{_short(file)}:{line} in {name}" for file, line, name in chosen[-_MAX_PLACES:]]


def _may_be_user_code(file: str) -> bool:
    path = Path(file)
    if file.startswith("<") or any(path.is_relative_to(folder) for folder in _IGNORED_PACKAGES):
        return False
    return not path.is_relative_to(_LIBRARY) or not _INSTALLED.isdisjoint(path.parts)


def _short(file: str) -> str:
    path, folder = Path(file), Path.cwd()
    return str(path.relative_to(folder) if path.is_relative_to(folder) else path)
