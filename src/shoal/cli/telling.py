"""How commands speak: to people, or with ``--json`` to programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import gymnasium
import typer
from rich.console import Console

from shoal.errors import (
    CheckpointError,
    ConfigError,
    MissingExtraError,
    NotFiniteError,
    RunInUseError,
)

__all__ = ["INTERRUPTED", "AsJson", "complain", "explained", "print_json", "print_line", "say"]

INTERRUPTED = 130
"""How a command ends after Ctrl-C."""

AsJson = Annotated[bool, typer.Option("--json", help="Tell it as JSON, for programs.")]

_USERS_MISTAKES: tuple[type[Exception], ...] = (
    ConfigError,
    CheckpointError,
    MissingExtraError,
    NotFiniteError,
    RunInUseError,
    OSError,
    ValueError,
    TypeError,
    ImportError,
    AttributeError,
    gymnasium.error.Error,
)


@contextmanager
def explained(*more: type[Exception]) -> Iterator[None]:
    """What a user can mend, and these errors, are said in one line and end the command."""
    try:
        yield
    except _USERS_MISTAKES + more as error:
        complain(str(error) or repr(error))
        raise typer.Exit(1) from error


def complain(text: str) -> None:
    """Say what is wrong."""
    _print(Console(stderr=True), text, "red")


def say(text: str) -> None:
    """Tell people something that is no result."""
    _print(Console(stderr=True), text)


def print_line(text: str) -> None:
    """Print text as it is: a path may have brackets, and is not to be broken into lines."""
    _print(Console(), text)


def print_json(told: Any) -> None:
    """Print plain data for a program to read."""
    # Not by a console, which would break lines and colour them.
    typer.echo(json.dumps(told, indent=2))


def _print(console: Console, text: str, style: str = "") -> None:
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)
