"""``shoal play``: environments for people."""

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

play = typer.Typer(no_args_is_help=True, help="Play against a policy, in a window.")


@play.callback()
def play_command() -> None:
    """Play against a policy, in a window."""


@play.command(epilog=f"Keys: {human_player.KEYS}.")
def hockey(
    opponent: Annotated[
        str,
        typer.Option(
            help="Who plays against you: weak, strong, or module:function, which is given the 18 "
            "numbers that it sees and returns the 4 numbers that it does; or module:player, which "
            "has such a method act."
        ),
    ] = "weak",
    mode: Annotated[str, typer.Option(help="NORMAL, TRAIN_SHOOTING or TRAIN_DEFENSE.")] = "NORMAL",
    max_steps: Annotated[int | None, typer.Option(min=1, help="Leave after so many steps.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything that is random.")] = None,
) -> None:
    """Play hockey: you are the orange one, on the left."""
    with report_user_errors(RuntimeError):  # there is no display
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
        raise ValueError(f"{name} is no function, and has no method act")
    return policy
