"""Sends exceptions of any class from a worker to its pool.

An exception that can be pickled is sent unchanged. If its constructor does not accept its ``args``,
it is rebuilt without calling the constructor. An exception that cannot be pickled is replaced by
one whose class has the same name and the same built-in base. So are exceptions that are not derived
from Exception, such as SystemExit, which must not end the caller.
"""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Any

import cloudpickle

from shoal._error_description import (
    ErrorDescription,
    RemoteTraceback,
    describe_error,
    error_text,
    stand_in,
)

__all__ = ["PackedError", "RemoteTraceback", "pack_error", "unpack_error"]


@dataclass(frozen=True)
class PackedError:
    """An exception that can be sent."""

    pickled: bytes | None
    description: ErrorDescription


def pack_error(error: BaseException) -> PackedError:
    """Make an exception ready to be sent to another process."""
    # SystemExit and KeyboardInterrupt of a worker must not stop the caller.
    pickled = _pickled(error) if isinstance(error, Exception) else None
    return PackedError(pickled, describe_error(error))


def unpack_error(packed: PackedError) -> BaseException:
    """Return the exception or its replacement, with the worker's traceback as its cause."""
    error: BaseException | None = None
    notes = list(packed.description.notes)
    if packed.pickled is not None:
        try:
            error = pickle.loads(packed.pickled)
        except Exception as failure:
            notes.append(f"shoal: it could not be unpickled in the caller: {failure!r}")
    if error is None:
        error = stand_in(packed.description)
    error.__notes__ = notes
    error.__cause__ = RemoteTraceback(packed.description.traceback)
    return error


def _pickled(error: BaseException) -> bytes | None:
    """Pickle an exception in the first way that restores it; None if there is none."""
    bare = _WithoutConstructor(type(error), error.args, {**vars(error), "__notes__": []})
    for form in (error, bare):
        for dumps in (pickle.dumps, cloudpickle.dumps):
            try:
                pickled = bytes(dumps(form))
                copy = pickle.loads(pickled)
                if type(copy) is type(error) and error_text(copy) == error_text(error):
                    return pickled
            except Exception:
                continue
    return None


class _WithoutConstructor:
    """Pickles an exception so that unpickling does not call its constructor."""

    def __init__(self, kind: type[BaseException], args: Any, attributes: dict[str, Any]) -> None:
        self._parts = kind, args, attributes

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, self._parts


def _rebuild(kind: type[BaseException], args: Any, attributes: dict[str, Any]) -> BaseException:
    error = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes)
    return error
