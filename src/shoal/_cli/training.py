"""``shoal train`` and what belongs to it: eval, resume, tournament."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer
from rich.console import Console

from shoal._cli import completion
from shoal._cli.env_lookup import require_path
from shoal._cli.output import (
    INTERRUPTED,
    AsJson,
    print_error,
    print_json,
    print_line,
    print_status,
    report_user_errors,
    stdout_reserved_for_json,
)
from shoal._cli.page_options import Host, Port, Web

if TYPE_CHECKING:
    from shoal.train._reporting import Display  # which needs an extra

__all__ = ["add_training"]

PANEL = "Train"
"""Under which title the help has these commands."""

Agent = Annotated[
    Path,
    typer.Argument(help="A run, or the file of an agent.", autocompletion=completion.agents),
]

Environment = Annotated[
    str | None,
    typer.Option(
        help="The environment; that of the run, or hockey.", autocompletion=completion.environments
    ),
]

Device = Annotated[str | None, typer.Option(help="Such as cuda or cpu; a GPU if there is one.")]


class _Page(NamedTuple):
    """Where to show the run besides the terminal."""

    host: str
    port: int | None


def add_training(app: typer.Typer) -> None:
    """Let the command line have these commands."""
    for name, command in (
        ("train", train),
        ("resume", resume),
        ("eval", evaluate),
        ("tournament", tournament),
    ):
        app.command(name, rich_help_panel=PANEL)(command)


@contextmanager
def _explained() -> Iterator[None]:
    with warnings.catch_warnings(), report_user_errors():
        warnings.simplefilter("default", RuntimeWarning)
        yield


def _told(
    prepare: Callable[[], Callable[..., dict[str, Any]]], page: _Page | None, as_json: bool
) -> None:
    """Train, and tell what came of it.

    Args:
        prepare: Gives what trains, and takes displays; raises what can be known to be wrong before
            there is a page.
        page: Where, if there is to be one.
        as_json: Whether to tell programs.
    """
    try:
        with _explained(), stdout_reserved_for_json(as_json), ExitStack() as opened:
            run = prepare()
            displays: list[Display] = []
            if page is not None:
                from shoal.live._training_page import TrainingPage

                shown = opened.enter_context(TrainingPage(page.host, page.port))
                print_status(f"Watch at {shown.url}")
                displays.append(shown)
            result = run(displays=displays)
    except KeyboardInterrupt as interrupt:
        print_error(str(interrupt) or "interrupted")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(result)
        return
    print_line(
        f"{result['total_steps']:,} steps, {result['total_episodes']:,} episodes, "
        f"{result['total_gradient_steps']:,} updates; see {result['run_folder']}/report.html"
    )


def train(
    config: Annotated[
        str,
        typer.Argument(
            help="A JSON file, or a config that comes along.", autocompletion=completion.configs
        ),
    ],
    num_envs: Annotated[
        int | None, typer.Option(min=1, help="How many environments; as the config says, or 1.")
    ] = None,
    device: Device = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Of everything random.")] = None,
    name: Annotated[str | None, typer.Option(help="Of the run; by default made of a date.")] = None,
    output: Annotated[Path, typer.Option(help="Where runs are.")] = completion.RUNS,
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="An agent, a checkpoint or a run to begin with.", autocompletion=completion.agents
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option(help="Show nothing while it goes on.")] = False,
    web: Web = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Train an agent as a config says.

    Ctrl-C saves, and `shoal resume` goes on.
    """

    def prepared() -> Callable[..., dict[str, Any]]:
        from shoal.train import train_single_run

        return partial(
            train_single_run,
            config,
            output,
            name,
            verbose=not quiet,
            device=device,
            checkpoint_path=start_from,
            num_envs=num_envs,
            seed=seed,
        )

    _told(prepared, _Page(host, port) if web else None, as_json)


def resume(
    run: Annotated[
        Path, typer.Argument(help="The folder of a run.", autocompletion=completion.runs)
    ],
    checkpoint: Annotated[
        str | None, typer.Option(help="Another checkpoint than the newest, by its name.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Such as cuda or cpu; by default that of the run.")
    ] = None,
    quiet: Annotated[bool, typer.Option(help="Show nothing while it goes on.")] = False,
    web: Web = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Go on with a run that was interrupted or killed."""

    def prepared() -> Callable[..., dict[str, Any]]:
        require_path(run, "run")
        from shoal.train import resume_run

        return partial(resume_run, run, checkpoint, verbose=not quiet, device=device)

    _told(prepared, _Page(host, port) if web else None, as_json)


def evaluate(
    agent: Agent,
    opponent: Annotated[
        list[str] | None,
        typer.Option(
            help="In hockey: weak, strong, or an agent. May be repeated; else both.",
            autocompletion=completion.players,
        ),
    ] = None,
    games: Annotated[int, typer.Option(min=1, help="How many, for each opponent.")] = 200,
    env: Environment = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the games.")] = 0,
    device: Annotated[str, typer.Option(help="Such as cuda.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Let an agent play, and tell how good it is."""
    from rich.table import Table

    with _explained(), stdout_reserved_for_json(as_json):
        require_path(agent, "agent")
        from shoal.train import evaluate_agent

        records = evaluate_agent(agent, opponent or [], games, env=env, seed=seed, device=device)
    if as_json:
        print_json({"evaluations": [record._asdict() for record in records]})
        return
    table = Table()
    for column in ("against", "games", "won", "95%", "drawn", "lost", "mean return", "length"):
        justify: Literal["left", "right"] = "left" if column == "against" else "right"
        table.add_column(column, justify=justify, no_wrap=True)
    for record in records:
        with_winner = record.win_rate is not None
        table.add_row(
            record.opponent or "-",
            str(record.games),
            f"{record.win_rate:.1%}" if with_winner else "-",
            f"{record.low:.1%} to {record.high:.1%}"
            if with_winner
            else f"{record.low:.4g} to {record.high:.4g}",
            str(record.draws) if with_winner else "-",
            str(record.losses) if with_winner else "-",
            f"{record.mean_reward:.2f}",
            f"{record.mean_length:.0f}",
        )
    Console().print(table)


def tournament(
    agents: Annotated[
        list[str],
        typer.Argument(
            help="Runs, files of agents, weak, strong: two or more.",
            autocompletion=completion.players,
        ),
    ],
    games: Annotated[
        int, typer.Option(min=2, help="Of each pair; half of them on each side")
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the games.")] = 0,
    device: Annotated[str, typer.Option(help="Such as cuda.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Let agents play hockey, each against each, and rank them."""
    with _explained(), stdout_reserved_for_json(as_json):
        from shoal.train import play_tournament
        from shoal.train._league.tables import render_standings

        standings = play_tournament(agents, games, seed=seed, device=device)
    if as_json:
        print_json(
            {
                "players": [row._asdict() for row in standings.rows()],
                "pairings": [result._asdict() for result in standings.results],
            }
        )
        return
    Console().print(render_standings(standings))
