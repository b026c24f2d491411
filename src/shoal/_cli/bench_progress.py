"""What ``shoal bench`` shows while it measures, on standard error."""

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
    """Say what will be done and how long it takes; what is yielded counts the turns."""
    many = f"{contenders} contenders, {_rounds(rounds)} in turn, about {_duration(seconds)}."
    console.print(Text(f"Measuring {env}: {many}"))
    columns = (
        BarColumn(24),
        TimeElapsedColumn(),
        TextColumn("{task.description}", style="dim"),
    )
    with Progress(
        *columns,
        console=console,
        transient=True,
        refresh_per_second=2,  # what is measured needs the cores
        disable=not console.is_terminal,  # where nobody looks, the line above says it all
    ) as it:
        task = it.add_task("", total=turns)

        def watch(contender: Contender, cell: Cell) -> None:
            it.update(task, advance=1, description=f"{cell.num_envs} x {label(contender.name)}")

        yield watch


def _rounds(count: int) -> str:
    return "1 round" if count == 1 else f"{count} rounds"


def _duration(seconds: float) -> str:
    """A time that is a guess.

    >>> _duration(33.2), _duration(4.1), _duration(400.0)
    ('35 seconds', '5 seconds', '7 minutes')
    """
    if seconds > 100:
        return f"{seconds / 60:.0f} minutes"
    return f"{max(1, round(seconds / 5)) * 5} seconds"
