"""``shoal bench``: a user's environment on the user's machine, next to what others make of it."""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from shoal._bench.comparison import Comparison, compare
from shoal._bench.contender_selection import PEERS, select_contenders
from shoal._bench.duration import expected_seconds, fitting_rounds
from shoal._bench.env_workload import env_workload
from shoal._bench.explanation import label
from shoal._bench.probe import probe_env
from shoal._bench.runner import OTHER_TURNS, Settings
from shoal._cli import completion
from shoal._cli.bench_progress import progress
from shoal._cli.bench_report import recommendations, show
from shoal._cli.env_lookup import is_env_id, load_target, parse_env_args
from shoal._cli.output import INTERRUPTED, AsJson, print_error, print_json, report_user_errors
from shoal.errors import MissingExtraError

__all__ = ["bench"]

_BUDGET = 30.0
"""Seconds that all may take, unless the user says how many rounds to measure."""


def bench(
    env: Annotated[
        str,
        typer.Argument(
            help="An environment's id, module:factory or file.py:Class.",
            show_default=False,
            autocompletion=completion.environments,
        ),
    ],
    num_envs: Annotated[
        str, typer.Option(metavar="N,N,...", help="How many environments, in turn.")
    ] = "8,64",
    against: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Other libraries to measure, or none.",
            autocompletion=completion.peers,
        ),
    ] = ",".join(PEERS),
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="How often each is measured; by default for half a minute."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long each is measured in a round.")] = 0.1,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="How many worker processes, in turn; by default a few numbers up to all cores.",
        ),
    ] = None,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="For the environment's constructor; may be repeated."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds after which one that does not answer is given up.")
    ] = 60.0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Draw a picture: a file, or a folder for shoal-bench-ENV.png."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure your environment on every backend, and elsewhere."""
    try:
        with _ended_politely(), report_user_errors():
            asked = _Asked(
                env,
                parse_env_args(env_arg or []),
                _counts("--num-envs", num_envs),
                _peers(against),
                _counts("--workers", workers) if workers else [],
                rounds,
                _positive("--seconds", seconds),
                _positive("--timeout", timeout),
            )
            picture = None if plot is None else _picture(plot, env)
            comparison = _measured(asked)
            if picture is not None:
                _draw(comparison, picture)
    except KeyboardInterrupt:
        print_error("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    source = _source(env)
    if as_json:
        advice = recommendations(comparison, *source, asked.arguments)
        print_json({**comparison.as_json(), "recommendations": advice})
    else:
        show(Console(), comparison, *source, asked.arguments, picture)
    if not any(outcome.advice for outcome in comparison.outcomes):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Asked:
    """What the user wants to be measured."""

    env: str
    arguments: dict[str, Any]
    num_envs: list[int]
    against: list[str]
    workers: list[int]
    rounds: int | None
    seconds: float
    timeout: float


def _measured(asked: _Asked) -> Comparison:
    load = partial(load_target, asked.env)
    known = asked.env if is_env_id(asked.env) else None
    workload = env_workload(asked.env, load, asked.arguments, known)
    console = Console(stderr=True)
    with console.status(Text(f"Looking at {asked.env}")):
        seen = probe_env(workload, load, asked.arguments, asked.timeout)
    field = select_contenders(
        workload,
        seen,
        asked.against,
        asked.num_envs,
        workers=asked.workers,
        has_arguments=bool(asked.arguments),
    )
    rounds = asked.rounds or fitting_rounds(field, seen, asked.num_envs, asked.seconds, _BUDGET)
    settings = Settings(rounds, asked.seconds, asked.timeout)
    expected = expected_seconds(field, seen, asked.num_envs, settings)
    names = [name for count in asked.num_envs for name in field.names(count)]
    turns = len(names) * (rounds + OTHER_TURNS)
    with progress(console, asked.env, len(set(names)), rounds, expected, turns) as watch:
        return compare(workload, seen, field, asked.num_envs, settings, watch)


def _draw(comparison: Comparison, path: Path) -> None:
    from shoal._bench import plot  # which needs matplotlib

    plot.save(comparison.report, path, label)


def _picture(path: Path, env: str) -> Path:
    """Where to draw, refused before anything is measured."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError('matplotlib is not installed, run `pip install "shoal[cli]"`')
    if path.is_dir():
        name = "".join(each if each.isalnum() or each in "-._" else "-" for each in env)
        path = path / f"shoal-bench-{name}.png"
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for the picture")
    return path


def _source(env: str) -> tuple[str, str]:
    """What to import, and the expression that then means the environment."""
    if is_env_id(env):
        return "", f'"{env}"'
    module, _, name = env.partition(":")
    module = Path(module).stem if module.endswith(".py") else module
    return f"from {module} import {name.partition('.')[0]}", name


def _counts(option: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"{option} must be positive numbers with commas between, got {text!r}")
    return list(dict.fromkeys(map(int, parts)))


def _peers(text: str, known: Collection[str] = PEERS) -> list[str]:
    names = [part.strip() for part in text.split(",")]
    if names == ["none"]:
        return []
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"--against knows {', '.join(known)} and none, got {', '.join(map(repr, unknown))}"
        )
    return names


def _positive(option: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{option} must be a positive number, got {value:g}")
    return value


@contextmanager
def _ended_politely() -> Iterator[None]:
    """SIGTERM ends contenders' processes as Ctrl-C does."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
