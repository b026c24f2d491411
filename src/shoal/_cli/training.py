"""The training commands: train, resume, eval, tournament."""

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
    from shoal.train._reporting import Display  # requires an extra

__all__ = ["add_training"]

PANEL = "Train"
"""The panel of these commands in the help text."""

Agent = Annotated[
    Path,
    typer.Argument(help="A training run or an agent file.", autocompletion=completion.agents),
]

Environment = Annotated[
    str | None,
    typer.Option(
        help="Environment. Default: that of the run, or hockey.",
        autocompletion=completion.environments,
    ),
]

Device = Annotated[
    str | None, typer.Option(help="Device, such as cuda or cpu. Default: a GPU if available.")
]


class _Page(NamedTuple):
    """Where to serve the page of a run."""

    host: str
    port: int | None


def add_training(app: typer.Typer) -> None:
    """Add the training commands to the command line."""
    for name, command in (
        ("train", train),
        ("resume", resume),
        ("eval", evaluate),
        ("tournament", tournament),
    ):
        app.command(name, rich_help_panel=PANEL)(command)


@contextmanager
def _report_errors() -> Iterator[None]:
    with warnings.catch_warnings(), report_user_errors():
        warnings.simplefilter("default", RuntimeWarning)
        yield


def _run_training(
    prepare: Callable[[], Callable[..., dict[str, Any]]], page: _Page | None, as_json: bool
) -> None:
    """Train, and print the result.

    Args:
        prepare: Returns the function that trains, which takes displays. It raises the errors that
            can be detected before the page is opened.
        page: Where to serve the page, if any.
        as_json: Whether to print the result as JSON.
    """
    try:
        with _report_errors(), stdout_reserved_for_json(as_json), ExitStack() as opened:
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
            help="A JSON file, or the name of a bundled config.", autocompletion=completion.configs
        ),
    ],
    num_envs: Annotated[
        int | None,
        typer.Option(min=1, help="Number of environments. Default: from the config, or 1."),
    ] = None,
    device: Device = None,
    seed: Annotated[int | None, typer.Option(min=0, help="Random seed.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run. Default: the date.")] = None,
    output: Annotated[Path, typer.Option(help="Folder of training runs.")] = completion.RUNS,
    start_from: Annotated[
        Path | None,
        typer.Option(
            help="Agent, checkpoint or run to start from.", autocompletion=completion.agents
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option(help="Hide progress.")] = False,
    web: Web = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Train an agent according to a config.

    Ctrl-C saves the run; `shoal resume` continues it.
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

    _run_training(prepared, _Page(host, port) if web else None, as_json)


def resume(
    run: Annotated[Path, typer.Argument(help="Folder of the run.", autocompletion=completion.runs)],
    checkpoint: Annotated[
        str | None, typer.Option(help="Name of the checkpoint. Default: the newest.")
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="Device, such as cuda or cpu. Default: that of the run.")
    ] = None,
    quiet: Annotated[bool, typer.Option(help="Hide progress.")] = False,
    web: Web = False,
    host: Host = "127.0.0.1",
    port: Port = None,
    as_json: AsJson = False,
) -> None:
    """Continue a run that was interrupted or killed."""

    def prepared() -> Callable[..., dict[str, Any]]:
        require_path(run, "run")
        from shoal.train import resume_run

        return partial(resume_run, run, checkpoint, verbose=not quiet, device=device)

    _run_training(prepared, _Page(host, port) if web else None, as_json)


def evaluate(
    agent: Agent,
    opponent: Annotated[
        list[str] | None,
        typer.Option(
            help="Hockey opponent: weak, strong or an agent. Can be repeated. "
            "Default: weak and strong.",
            autocompletion=completion.players,
        ),
    ] = None,
    games: Annotated[int, typer.Option(min=1, help="Number of games per opponent.")] = 200,
    env: Environment = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    device: Annotated[str, typer.Option(help="Device, such as cuda.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Evaluate an agent."""
    from rich.table import Table

    with _report_errors(), stdout_reserved_for_json(as_json):
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
            help="Two or more players: runs, agent files, weak or strong.",
            autocompletion=completion.players,
        ),
    ],
    games: Annotated[
        int, typer.Option(min=2, help="Number of games per pair; half of them on each side.")
    ] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    device: Annotated[str, typer.Option(help="Device, such as cuda.")] = "cpu",
    as_json: AsJson = False,
) -> None:
    """Rank agents by letting each play hockey against each other."""
    with _report_errors(), stdout_reserved_for_json(as_json):
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
