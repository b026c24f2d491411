"""Exceptions on their way from a worker to its pool: none is lost, whatever its class.

An exception is sent as it is where it survives pickling. One whose constructor does not take its
``args`` is rebuilt without calling it. One that cannot be pickled at all is replaced by a class of
the same name that is derived from the same built-in exception, and so is one that is no error at
all, such as SystemExit: a worker's wish to end is no reason for its caller to end.
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
    """An exception, ready to be sent."""

    pickled: bytes | None
    description: ErrorDescription


def pack_error(error: BaseException) -> PackedError:
    """Make an exception ready to be sent to another process."""
    # What is no error but a wish to stop concerns the worker, and must not stop the caller.
    pickled = _pickled(error) if isinstance(error, Exception) else None
    return PackedError(pickled, describe_error(error))


def unpack_error(packed: PackedError) -> BaseException:
    """The exception, or what stands in for it, with the worker's traceback as its cause."""
    error: BaseException | None = None
    notes = list(packed.description.notes)
    if packed.pickled is not None:
        try:
            error = pickle.loads(packed.pickled)
        except Exception as failure:
            notes.append(f"shoal: here it could not be unpickled: {failure!r}")
    if error is None:
        error = stand_in(packed.description)
    error.__notes__ = notes
    error.__cause__ = RemoteTraceback(packed.description.traceback)
    return error


def _pickled(error: BaseException) -> bytes | None:
    """The exception, pickled in the first way that brings it back as it was."""
    bare = _Bare(type(error), error.args, {**vars(error), "__notes__": []})
    for form in (error, bare):
        for dumps in (pickle.dumps, cloudpickle.dumps):
            try:
                pickled = bytes(dumps(form))
                back = pickle.loads(pickled)
                if type(back) is type(error) and error_text(back) == error_text(error):
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
