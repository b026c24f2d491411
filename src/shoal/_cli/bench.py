"""``shoal bench``: compare the backends, and other libraries, on a user's environment."""

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
"""The number of rounds is chosen so that the command takes about this many seconds."""


def bench(
    env: Annotated[
        str,
        typer.Argument(
            help="Environment: an id, module:factory or file.py:Class.",
            show_default=False,
            autocompletion=completion.environments,
        ),
    ],
    num_envs: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of environments to measure.")
    ] = "8,64",
    against: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Other libraries to compare with, or none.",
            autocompletion=completion.peers,
        ),
    ] = ",".join(PEERS),
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of rounds. Default: as many as fit into about 30 s."),
    ] = None,
    seconds: Annotated[float, typer.Option(help="Seconds per contender and round.")] = 0.1,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N,N,...",
            help="Numbers of worker processes to measure. Default: several, up to all cores.",
        ),
    ] = None,
    env_arg: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE", help="Argument of the environment's constructor. Can be repeated."
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option(help="Seconds to wait for a contender that does not respond.")
    ] = 60.0,
    plot: Annotated[
        Path | None,
        typer.Option(help="Save a plot: a file name, or a folder for shoal-bench-ENV.png."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare backends and other libraries on an environment."""
    try:
        with _interrupt_on_sigterm(), report_user_errors():
            request = _Request(
                env,
                parse_env_args(env_arg or []),
                _counts("--num-envs", num_envs),
                _peers(against),
                _counts("--workers", workers) if workers else [],
                rounds,
                _positive("--seconds", seconds),
                _positive("--timeout", timeout),
            )
            plot_path = None if plot is None else _plot_path(plot, env)
            comparison = _measure(request)
            if plot_path is not None:
                _save_plot(comparison, plot_path)
    except KeyboardInterrupt:
        print_error("interrupted")
        raise typer.Exit(INTERRUPTED) from None
    source = _source(env)
    if as_json:
        advice = recommendations(comparison, *source, request.arguments)
        print_json({**comparison.as_json(), "recommendations": advice})
    else:
        show(Console(), comparison, *source, request.arguments, plot_path)
    if not any(outcome.advice for outcome in comparison.outcomes):
        raise typer.Exit(1)


@dataclass(frozen=True)
class _Request:
    """The options of the command, parsed."""

    env: str
    arguments: dict[str, Any]
    num_envs: list[int]
    against: list[str]
    workers: list[int]
    rounds: int | None
    seconds: float
    timeout: float


def _measure(request: _Request) -> Comparison:
    load = partial(load_target, request.env)
    env_id = request.env if is_env_id(request.env) else None
    workload = env_workload(request.env, load, request.arguments, env_id)
    console = Console(stderr=True)
    with console.status(Text(f"Examining {request.env} ...")):
        profile = probe_env(workload, load, request.arguments, request.timeout)
    selection = select_contenders(
        workload,
        profile,
        request.against,
        request.num_envs,
        workers=request.workers,
        has_arguments=bool(request.arguments),
    )
    rounds = request.rounds or fitting_rounds(
        selection, profile, request.num_envs, request.seconds, _BUDGET
    )
    settings = Settings(rounds, request.seconds, request.timeout)
    expected = expected_seconds(selection, profile, request.num_envs, settings)
    names = [name for count in request.num_envs for name in selection.names(count)]
    turns = len(names) * (rounds + OTHER_TURNS)
    with progress(console, request.env, len(set(names)), rounds, expected, turns) as watch:
        return compare(workload, profile, selection, request.num_envs, settings, watch)


def _save_plot(comparison: Comparison, path: Path) -> None:
    from shoal._bench import plot  # requires matplotlib

    plot.save(comparison.report, path, label)


def _plot_path(path: Path, env: str) -> Path:
    """Return the file to save the plot to. Errors are raised before anything is measured."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError('matplotlib is not installed: pip install "shoal[cli]"')
    if path.is_dir():
        name = "".join(each if each.isalnum() or each in "-._" else "-" for each in env)
        path = path / f"shoal-bench-{name}.png"
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder {path.parent} for the plot")
    return path


def _source(env: str) -> tuple[str, str]:
    """Return the import line, if any, and the expression for the environment."""
    if is_env_id(env):
        return "", f'"{env}"'
    module, _, name = env.partition(":")
    module = Path(module).stem if module.endswith(".py") else module
    return f"from {module} import {name.partition('.')[0]}", name


def _counts(option: str, text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and int(part) > 0 for part in parts):
        raise ValueError(f"{option} must be positive numbers separated by commas, got {text!r}")
    return list(dict.fromkeys(map(int, parts)))


def _peers(text: str, known: Collection[str] = PEERS) -> list[str]:
    names = [part.strip() for part in text.split(",")]
    if names == ["none"]:
        return []
    if unknown := [name for name in names if name not in known]:
        raise ValueError(
            f"--against must be none or a list of {', '.join(known)}; got "
            f"{', '.join(map(repr, unknown))}"
        )
    return names


def _positive(option: str, value: float) -> float:
    if not value > 0:
        raise ValueError(f"{option} must be a positive number, got {value:g}")
    return value


@contextmanager
def _interrupt_on_sigterm() -> Iterator[None]:
    """Handle SIGTERM like Ctrl-C, so that the processes of contenders are killed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
