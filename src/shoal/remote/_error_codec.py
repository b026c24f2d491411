"""Exceptions between a server and its clients: by name, of those that both ends know."""

from __future__ import annotations

import builtins

import gymnasium.error

from shoal import errors
from shoal._error_description import ErrorDescription, RemoteTraceback, describe_error, stand_in
from shoal.remote._messages import Failure, whole_text

__all__ = ["failure_of", "raised_failure"]

_KNOWN: dict[str, type[Exception]] = {
    name: kind
    for module in (builtins, gymnasium.error, errors)
    for name, kind in vars(module).items()
    if isinstance(kind, type) and issubclass(kind, Exception)
}


def failure_of(error: BaseException, *, tells_traceback: bool) -> Failure:
    """An exception as it is told to a client."""
    told = describe_error(error)
    is_known = _KNOWN.get(told.name) is type(error)
    return Failure(
        told.name,
        told.builtin,
        whole_text(told.message),
        tuple(map(whole_text, told.notes)),
        whole_text(told.traceback) if tells_traceback else "",
        is_known,
    )


def raised_failure(failure: Failure) -> BaseException:
    """The exception of this name where it is a known one, else what stands in for it."""
    kind = _KNOWN.get(failure.name) if failure.is_known else None
    error: BaseException | None = None
    if kind is not None:
        try:
            error = kind(failure.message)
        except TypeError:  # it wants more than a message
            error = None
    if error is None:
        told = ErrorDescription(failure.name, failure.message, failure.builtin, [], "")
        error = stand_in(told)
    for note in failure.notes:
        error.add_note(note)
    if failure.traceback:
        error.__cause__ = RemoteTraceback(failure.traceback)
    return error
