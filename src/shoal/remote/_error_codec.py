"""Exceptions as messages: by name, if both ends know the class."""

from __future__ import annotations

import builtins

import gymnasium.error

from shoal import errors
from shoal._error_description import ErrorDescription, RemoteTraceback, describe_error, stand_in
from shoal.remote._messages import Failure, escape_surrogates

__all__ = ["decode_error", "encode_error"]

_KNOWN: dict[str, type[Exception]] = {
    name: kind
    for module in (builtins, gymnasium.error, errors)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}


def encode_error(error: BaseException, *, with_traceback: bool) -> Failure:
    """Convert an exception to a message."""
    description = describe_error(error)
    is_known = _KNOWN.get(description.name) is type(error)
    return Failure(
        description.name,
        description.builtin,
        escape_surrogates(description.message),
        tuple(map(escape_surrogates, description.notes)),
        escape_surrogates(description.traceback) if with_traceback else "",
        is_known,
    )


def decode_error(failure: Failure) -> BaseException:
    """Convert a message to an exception; a substitute represents an unknown class."""
    kind = _KNOWN.get(failure.name) if failure.is_known else None
    error: BaseException | None = None
    if kind is not None:
        try:
            error = kind(failure.message)
        except TypeError:  # the constructor has more required arguments
            error = None
    if error is None:
        description = ErrorDescription(failure.name, failure.message, failure.builtin, [], "")
        error = stand_in(description)
    for note in failure.notes:
        error.add_note(note)
    if failure.traceback:
        error.__cause__ = RemoteTraceback(failure.traceback)
    return error
