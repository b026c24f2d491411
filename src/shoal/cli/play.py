"""``shoal play``: environments for people."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from gymnasium.error import DependencyNotInstalled
from rich.console import Console

from shoal.envs.hockey import human as hockey_for_humans
from shoal.envs.window import import_pygame
from shoal.hockey import BasicOpponent, HockeyEnv

__all__ = ["play"]

play = typer.Typer(no_args_is_help=True, help="Play against a policy, in a window.")


@play.callback()
def play_command() -> None:
    """Play against a policy, in a window."""


@play.command(epilog=f"Keys: {hockey_for_humans.KEYS}.")
def hockey(
    opponent: Annotated[
        str,
        typer.Option(
            help="Who plays against you: weak, strong, or module:function, which is given the 18 "
            "numbers that it sees and returns the 4 numbers that it does."
        ),
    ] = "weak",
    mode: Annotated[str, typer.Option(help="NORMAL, TRAIN_SHOOTING or TRAIN_DEFENSE.")] = "NORMAL",
    max_steps: Annotated[int | None, typer.Option(help="Leave after so many steps.")] = None,
) -> None:
    """Play hockey: you are the orange one, on the left."""
    try:
        import_pygame()
        policy = _policy(opponent)
        env = HockeyEnv(mode=mode)
    except (ValueError, ImportError, AttributeError, DependencyNotInstalled) as error:
        Console(stderr=True).print(str(error), style="red", highlight=False)
        raise typer.Exit(1) from error
    try:
        goals = hockey_for_humans.play(env, policy, max_steps)
    finally:
        env.close()
    Console().print(f"You {goals[0]} : {goals[1]}", highlight=False)


def _policy(name: str) -> Any:
    if name in ("weak", "strong"):
        return BasicOpponent(weak=name == "weak").act
    module, separator, function = name.partition(":")
    if not separator:
        raise ValueError(f"opponent must be weak, strong or module:function, got {name!r}")
    sys.path.insert(0, str(Path.cwd()))
    return getattr(importlib.import_module(module), function)
