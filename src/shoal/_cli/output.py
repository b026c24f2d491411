"""The output of commands: text for people, or JSON with ``--json``; and error messages."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from math import isfinite
from numbers import Integral, Real
from typing import Annotated, Any

import gymnasium
import typer
from rich.console import Console

from shoal._cli.user_errors import describe_user_error
from shoal.errors import (
    CheckpointError,
    ConfigError,
    KernelError,
    MissingExtraError,
    NotFiniteError,
    RunInUseError,
    WorkerCrashedError,
)

__all__ = [
    "INTERRUPTED",
    "AsJson",
    "print_error",
    "print_json",
    "print_line",
    "print_status",
    "report_user_errors",
    "stdout_reserved_for_json",
]

INTERRUPTED = 130
"""The exit status after Ctrl-C."""

AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]

_USER_ERRORS: tuple[type[Exception], ...] = (
    ConfigError,
    CheckpointError,
    MissingExtraError,
    NotFiniteError,
    RunInUseError,
    KernelError,
    WorkerCrashedError,
    OSError,
    ValueError,
    TypeError,
    ImportError,
    AttributeError,
    gymnasium.error.Error,
)


@contextmanager
def report_user_errors(*more: type[Exception]) -> Iterator[None]:
    """Print errors that the user can fix, and exceptions of types ``more``, and exit with status 1.

    Most messages are one line. An exception raised in the user's own code is printed, whatever its
    type, with the place where it was raised.
    """
    try:
        yield
    except Exception as error:
        message = describe_user_error(error)
        if message is None and not isinstance(error, _USER_ERRORS + more):
            raise
        print_error(message or str(error) or repr(error))
        raise typer.Exit(1) from error


def print_error(text: str) -> None:
    """Print an error message to standard error."""
    _print(Console(stderr=True), text, "red")


def print_status(text: str) -> None:
    """Print a message that is not part of the result to standard error."""
    _print(Console(stderr=True), text)


def print_line(text: str) -> None:
    """Print one line of the result as it is, without markup or wrapping."""
    _print(Console(), text)


@contextmanager
def stdout_reserved_for_json(as_json: bool) -> Iterator[None]:
    """With ``--json``, redirect other output in the block to standard error."""
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        yield


def print_json(data: Any) -> None:
    """Print plain data as JSON; numbers that are not finite become null."""
    # A rich console would wrap and color it.
    typer.echo(json.dumps(_finite(data), indent=2, allow_nan=False))


def _finite(data: Any) -> Any:
    """Return the data with None in place of numbers that JSON cannot represent.

    >>> _finite({"mean": float("nan"), "all": (1, 2.5, float("inf"), True)})
    {'mean': None, 'all': [1, 2.5, None, True]}
    """
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    if isinstance(data, bool | int):
        return data
    if isinstance(data, Integral):  # a NumPy integer
        return int(data)
    if isinstance(data, Real):
        number = float(data)
        return number if isfinite(number) else None
    return data


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
