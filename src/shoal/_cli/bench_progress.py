"""The progress display of ``shoal bench``, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from shoal._bench.contenders.base import Contender
from shoal._bench.explanation import label
from shoal._bench.results import Cell

__all__ = ["progress"]

Watch = Callable[[Contender, Cell], None]


@contextmanager
def progress(
    console: Console, env: str, contenders: int, rounds: int, seconds: float, turns: int
) -> Iterator[Watch]:
    """Print what will be measured, and yield a function to call before each turn."""
    summary = f"{contenders} contenders, {_rounds(rounds)}, about {_duration(seconds)}."
    console.print(Text(f"Measuring {env}: {summary}"))
    columns = (
        BarColumn(24),
        TimeElapsedColumn(),
        TextColumn("{task.description}", style="dim"),
    )
    with Progress(
        *columns,
        console=console,
        transient=True,
        refresh_per_second=2,  # rarely, because the contenders need the cores
        disable=not console.is_terminal,
    ) as it:
        task = it.add_task("", total=turns)

        def watch(contender: Contender, cell: Cell) -> None:
            it.update(task, advance=1, description=f"{cell.num_envs} x {label(contender.name)}")

        yield watch


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _duration(seconds: float) -> str:
    """Format an estimated duration.

    >>> _duration(33.2), _duration(4.1), _duration(400.0)
    ('35 seconds', '5 seconds', '7 minutes')
    """
    if seconds > 100:
        return f"{seconds / 60:.0f} minutes"
    return f"{max(1, round(seconds / 5)) * 5} seconds"
