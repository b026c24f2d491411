"""Exceptions on their way from a worker to its pool: none is lost, whatever its class.

An exception is sent as it is where it survives pickling. One whose constructor does not take its
``args`` is rebuilt without calling it. One that cannot be pickled at all is replaced by a class of
the same name that is derived from the same built-in exception, and so is one that is no error at
all, such as SystemExit: a worker's wish to end is no reason for its caller to end.
"""

from __future__ import annotations

import builtins
import pickle
import traceback
from dataclasses import dataclass
from typing import Any

import cloudpickle

from shoal.errors import RemoteError

__all__ = ["PackedError", "RemoteTraceback", "pack_error", "unpack_error"]


class RemoteTraceback(Exception):  # noqa: N818 - it tells where, not what
    """Shows, as an exception's cause, where in a worker it was raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True)
class PackedError:
    """An exception, ready to be sent."""

    pickled: bytes | None
    name: str
    message: str
    builtin: str
    notes: list[str]
    traceback: str


def pack_error(error: BaseException) -> PackedError:
    """Make an exception ready to be sent to another process."""
    kind = type(error)
    builtin = next(base for base in kind.__mro__ if base.__module__ == builtins.__name__)
    return PackedError(
        # What is no error but a wish to stop concerns the worker, and must not stop the caller.
        pickled=_pickled(error) if isinstance(error, Exception) else None,
        name=kind.__qualname__,
        message=_text(error),
        builtin=builtin.__name__,
        notes=list(getattr(error, "__notes__", ())),
        traceback=_traceback(error),
    )


def _traceback(error: BaseException) -> str:
    shown = traceback.TracebackException.from_exception(error)
    shown.__notes__ = None  # they are brought over on their own
    return "".join(shown.format())


def unpack_error(packed: PackedError) -> BaseException:
    """The exception, or what stands in for it, with the worker's traceback as its cause."""
    error: BaseException | None = None
    if packed.pickled is not None:
        try:
            error = pickle.loads(packed.pickled)
        except Exception as failure:
            packed.notes.append(f"shoal: here it could not be unpickled: {failure!r}")
    if error is None:
        error = _substitute(packed)
    error.__notes__ = packed.notes
    error.__cause__ = RemoteTraceback(packed.traceback)
    return error


def _substitute(packed: PackedError) -> BaseException:
    """An exception of the same name, derived from the same built-in one where that is possible."""
    builtin = getattr(builtins, packed.builtin)
    bases: tuple[type[BaseException], ...] = (RemoteError,)
    if issubclass(builtin, Exception) and builtin not in RemoteError.__mro__:
        bases = (RemoteError, builtin)
    named = {"__module__": "shoal.errors"}
    error: BaseException
    try:
        error = type(packed.name, bases, named)(packed.message)
    except TypeError:  # some built-in exceptions want more than a message
        error = type(packed.name, (RemoteError,), named)(packed.message)
    return error


def _pickled(error: BaseException) -> bytes | None:
    """The exception, pickled in the first way that brings it back as it was."""
    bare = _Bare(type(error), error.args, {**vars(error), "__notes__": []})
    for form in (error, bare):
        for dumps in (pickle.dumps, cloudpickle.dumps):
            try:
                pickled = bytes(dumps(form))
                back = pickle.loads(pickled)
                if type(back) is type(error) and _text(back) == _text(error):
                    return pickled
            except Exception:
                continue
    return None


class _Bare:
    """Pickles an exception such that its constructor is not called."""

    def __init__(self, kind: type[BaseException], args: Any, attributes: dict[str, Any]) -> None:
        self._parts = kind, args, attributes

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, self._parts


def _rebuilt(kind: type[BaseException], args: Any, attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes)
    return error


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as failure:
        return f"(its message cannot be shown: {failure!r})"
