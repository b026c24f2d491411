"""How commands speak: to people, or with ``--json`` to programs."""

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
"""How a command ends after Ctrl-C."""

AsJson = Annotated[bool, typer.Option("--json", help="Tell it as JSON, for programs.")]

_USERS_MISTAKES: tuple[type[Exception], ...] = (
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
    """What a user can mend, and these errors, are said in one line and end the command.

    What came out of a user's own code is said together with where it was raised, whatever it is.
    """
    try:
        yield
    except Exception as error:
        told = describe_user_error(error)
        if told is None and not isinstance(error, _USERS_MISTAKES + more):
            raise
        print_error(told or str(error) or repr(error))
        raise typer.Exit(1) from error


def print_error(text: str) -> None:
    """Say what is wrong."""
    _print(Console(stderr=True), text, "red")


def print_status(text: str) -> None:
    """Tell people something that is no result."""
    _print(Console(stderr=True), text)


def print_line(text: str) -> None:
    """Print text as it is: a path may have brackets, and is not to be broken into lines."""
    _print(Console(), text)


@contextmanager
def stdout_reserved_for_json(as_json: bool) -> Iterator[None]:
    """With ``--json``, what is printed meanwhile goes to standard error."""
    with redirect_stdout(sys.stderr) if as_json else nullcontext():
        yield


def print_json(told: Any) -> None:
    """Print plain data for a program to read; numbers that are not finite are null."""
    # Not by a console, which would break lines and colour them.
    typer.echo(json.dumps(_finite(told), indent=2, allow_nan=False))


def _finite(told: Any) -> Any:
    """The same data, with None for numbers that JSON does not know.

    >>> _finite({"mean": float("nan"), "all": (1, 2.5, float("inf"), True)})
    {'mean': None, 'all': [1, 2.5, None, True]}
    """
    if isinstance(told, Mapping):
        return {str(key): _finite(value) for key, value in told.items()}
    if isinstance(told, list | tuple):
        return [_finite(value) for value in told]
    if isinstance(told, bool | int):
        return told
    if isinstance(told, Integral):  # of NumPy
        return int(told)
    if isinstance(told, Real):
        number = float(told)
        return number if isfinite(number) else None
    return told


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
