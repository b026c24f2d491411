"""Descriptions of exceptions, for sending them to another process, and notes on them.

Restoring a description executes none of its content: it consists of a name, a message, notes and a
traceback, all of them text.
"""

from __future__ import annotations

import builtins
import re
import traceback
from collections.abc import Sequence
from dataclasses import dataclass

from shoal.errors import RemoteError

__all__ = [
    "ErrorDescription",
    "RemoteTraceback",
    "describe_error",
    "error_text",
    "note_others",
    "renumber_notes",
    "stand_in",
]

_SLOT_NOTE = re.compile(r"^shoal: in slot (\d+) of \d+")
"""Matches the start of the notes that name the slot in which an exception was raised."""


class RemoteTraceback(Exception):  # noqa: N818 - it holds a location, it is not an error itself
    """The cause of an exception from another process; shows the traceback in that process."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class ErrorDescription:
    """An exception as text; ``builtin`` is the name of its most derived built-in base class."""

    name: str
    message: str
    builtin: str
    notes: list[str]
    traceback: str


def describe_error(error: BaseException) -> ErrorDescription:
    """Return the description of an exception."""
    kind = type(error)
    shown = traceback.TracebackException.from_exception(error)
    shown.__notes__ = None  # transferred separately
    return ErrorDescription(
        name=kind.__qualname__,
        message=error_text(error),
        builtin=next(
            base.__name__ for base in kind.__mro__ if base.__module__ == builtins.__name__
        ),
        notes=list(getattr(error, "__notes__", ())),
        traceback="".join(shown.format()),
    )


def stand_in(description: ErrorDescription) -> BaseException:
    """Return an exception with the same name and, if possible, the same built-in base class."""
    builtin = getattr(builtins, description.builtin, Exception)
    is_error = isinstance(builtin, type) and issubclass(builtin, Exception)
    bases: tuple[type[BaseException], ...] = (RemoteError,)
    if is_error and builtin not in RemoteError.__mro__:
        bases = (RemoteError, builtin)
    named = {"__module__": "shoal.errors"}
    name = description.name if description.name.isprintable() else RemoteError.__name__
    error: BaseException
    try:
        error = type(name, bases, named)(description.message)
    except TypeError:  # some built-in exceptions require more arguments than a message
        error = type(name, (RemoteError,), named)(description.message)
    return error


def error_text(error: BaseException) -> str:
    """Return an exception's message, even if its ``__str__`` raises."""
    try:
        return str(error)
    except Exception as failure:
        return f"(its message cannot be shown: {failure!r})"


def note_others(errors: Sequence[tuple[int, BaseException]]) -> None:
    """Add a note to the first of several slots' errors that lists the other failed slots.

    >>> errors = [(slot, ValueError("too late")) for slot in (0, 1, 2, 3, 7)]
    >>> note_others([*errors, (8, OSError("no such device"))])
    >>> for note in errors[0][1].__notes__:
    ...     print(note)
    shoal: 4 other slots have failed in the same way: 1 to 3, 7
    shoal: slot 8 has failed as well: OSError('no such device')
    """
    alike: dict[str, list[int]] = {}
    for slot, error in errors:
        alike.setdefault(_shown(error), []).append(slot)
    for place, (shown, slots) in enumerate(alike.items()):
        if place > 0:
            have = "slot {} has" if len(slots) == 1 else "slots {} have"
            note = f"{have.format(_ranges(slots))} failed as well: {shown}"
        elif len(slots) == 1:
            continue
        elif len(slots) == 2:
            note = f"slot {slots[1]} has failed in the same way"
        else:
            others = f"{len(slots) - 1} other slots"
            note = f"{others} have failed in the same way: {_ranges(slots[1:])}"
        errors[0][1].add_note(f"shoal: {note}")


def _shown(error: BaseException) -> str:
    """Return an exception's type and message, even if its ``__repr__`` raises."""
    try:
        return repr(error)
    except Exception:
        return f"{type(error).__qualname__}: {error_text(error)}"


def _ranges(numbers: Sequence[int]) -> str:
    """Format slot numbers; three or more consecutive ones as a range, such as ``1 to 3``."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )


def renumber_notes(error: BaseException, first: int, num_envs: int) -> None:
    """Translate slot numbers in notes from those of a part of a vector to those of the vector.

    >>> error = ValueError("too late")
    >>> error.add_note("shoal: in slot 1 of 4, in its step")
    >>> renumber_notes(error, first=8, num_envs=16)
    >>> error.__notes__
    ['shoal: in slot 9 of 16, in its step']
    """
    notes = getattr(error, "__notes__", None)
    if notes:
        error.__notes__ = [
            _SLOT_NOTE.sub(lambda it: f"shoal: in slot {int(it[1]) + first} of {num_envs}", note)
            for note in notes
        ]
