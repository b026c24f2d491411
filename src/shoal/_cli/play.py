"""``shoal play``: play environments in a window."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console

from shoal._cli.env_lookup import is_env_id, load_target
from shoal._cli.output import report_user_errors
from shoal._envs.hockey import human_player
from shoal._envs.hockey.human_player import Policy
from shoal.hockey import BasicOpponent, HockeyEnv

__all__ = ["play"]

play = typer.Typer(no_args_is_help=True, help="Play against a policy in a window.")


@play.callback()
def play_command() -> None:
    """Play against a policy in a window."""


@play.command(epilog=f"Keys: {human_player.KEYS}.")
def hockey(
    opponent: Annotated[
        str,
        typer.Option(
            help="The opponent: weak, strong, or module:name of a function, or of an object with a "
            "method act, that takes an observation (18 numbers) and returns an action (4 numbers)."
        ),
    ] = "weak",
    mode: Annotated[
        str, typer.Option(help="Game mode: NORMAL, TRAIN_SHOOTING or TRAIN_DEFENSE.")
    ] = "NORMAL",
    max_steps: Annotated[
        int | None, typer.Option(min=1, help="Stop after this many steps.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
) -> None:
    """Play hockey. You are the orange player, on the left."""
    with report_user_errors(RuntimeError):  # raised without a display
        policy = _policy(opponent, seed)
        env = HockeyEnv(mode=int(mode) if mode.isdigit() else mode.upper())
        env.reset(seed=seed)
        env.render("human")
    try:
        goals = human_player.play(env, policy, max_steps)
    finally:
        env.close()
    Console().print(f"You {goals[0]} : {goals[1]} {opponent}", highlight=False)


def _policy(name: str, seed: int | None) -> Policy:
    if name in ("weak", "strong"):
        return BasicOpponent(weak=name == "weak", seed=seed).act
    if is_env_id(name):
        raise ValueError(f"opponent must be weak, strong or module:function, got {name!r}")
    player: Any = load_target(name)
    policy: Policy = getattr(player, "act", player)
    if not callable(policy):
        raise ValueError(f"{name} must be a function or have a method act")
    return policy
