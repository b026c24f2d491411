"""The panel of the live display, drawn from the latest records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shoal._formatting import (
    Sparkline,
    clamp_share,
    count,
    duration,
    number,
    percent,
    printable,
    speed,
)
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.formatting import (
    interval_text,
    remaining_seconds,
    score_text,
    updates_per_step,
)

__all__ = ["RunPanel"]

_WIDE, _MEDIUM = 110, 64
_CURVE_WIDTH = 48
_FIGURES_HEIGHT, _TABLE_HEADER_HEIGHT = 12, 4


@dataclass
class RunPanel:
    """The state of a run as a rich renderable, for Unicode consoles of any size."""

    title: str
    phases: Sequence[str]
    goal: str = ""
    latest: ProgressRecord | None = None
    evaluations: dict[str, EvaluationRecord] = field(default_factory=dict)
    ratings: Sequence[RatingRecord] = ()
    returns: Sparkline = field(default_factory=Sparkline)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts: list[RenderableType] = []
        if self.latest is None:
            parts.append(Text("waiting for the first progress record", "dim"))
        else:
            parts += [
                _bars(self.latest, len(self.phases), options),
                Text(),
                _figures(self.latest, options),
                _curve(self.latest, self.returns, options),
            ]
            if self.latest.losses:
                parts += [_losses(self.latest)]
        tables = self._tables(options)
        if tables and options.max_width >= _WIDE:
            side_by_side = Table.grid(padding=(0, 4))
            side_by_side.add_row(*tables)
            tables = [side_by_side]
        for table in tables:
            parts += [Text(), table]
        yield Panel(
            Group(*parts),
            title=_text(self.title, "bold"),
            subtitle=_text(self.goal, "dim") if self.goal else None,
            box=box.ROUNDED,
            border_style="blue",
        )

    def _tables(self, options: ConsoleOptions) -> list[Table]:
        stacked = 2 if self.evaluations and self.ratings and options.max_width < _WIDE else 1
        height = (options.size.height - _FIGURES_HEIGHT) // stacked - _TABLE_HEADER_HEIGHT
        rows = min(max(height, 2), 10)
        tables = []
        if self.evaluations:
            tables.append(_evaluations(list(self.evaluations.values()), rows, options))
        if self.ratings:
            tables.append(_league(self.ratings, rows, options))
        return tables


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style, overflow="ellipsis")


def _bars(latest: ProgressRecord, phases: int, options: ConsoleOptions) -> Table:
    bars = Table.grid(padding=(0, 1), expand=True)
    bars.add_column(no_wrap=True, max_width=max(8, options.max_width // 2))
    bars.add_column(ratio=1)
    bars.add_column(justify="right", no_wrap=True)
    phase = f"phase {latest.phase_number + 1} of {phases}: {latest.phase}"
    for name, part, colour in (
        (phase, clamp_share(latest.phase_share), "cyan"),
        ("run", clamp_share(latest.share), "blue"),
    ):
        bar = ProgressBar(total=1.0, completed=part, complete_style=colour, finished_style="green")
        bars.add_row(_text(name), bar, Text(percent(part)))
    return bars


def _figures(latest: ProgressRecord, options: ConsoleOptions) -> Table:
    figures = [
        ("steps", count(latest.step)),
        ("episodes", count(latest.episodes)),
        ("updates", count(latest.updates)),
        ("steps/s", speed(latest.steps_per_second)),
        ("updates/s", speed(latest.updates_per_second)),
        ("updates per step", number(updates_per_step(latest))),
        ("time", duration(latest.seconds)),
        ("time left", duration(remaining_seconds(latest))),
        ("recent win rate", percent(latest.win_rate)),
    ]
    per_row = 3 if options.max_width >= _MEDIUM else 1
    grid = Table.grid(padding=(0, 1), expand=True)
    for _ in range(per_row):
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(no_wrap=True, ratio=1)
    for start in range(0, len(figures), per_row):
        pairs = figures[start : start + per_row]
        grid.add_row(*(Text(text) for pair in pairs for text in pair))
    return grid


def _curve(latest: ProgressRecord, returns: Sparkline, options: ConsoleOptions) -> Table:
    width = min(_CURVE_WIDTH, options.max_width - 32)
    row = Table.grid(padding=(0, 1))
    row.add_row(
        Text("recent return", "dim"),
        Text(number(latest.mean_reward), "bold"),
        Text(returns.draw(width), "green", no_wrap=True, overflow="crop"),
    )
    return row


def _losses(latest: ProgressRecord) -> Text:
    line = Text()
    for name, loss in latest.losses.items():
        line.append("   " if line else "")
        line.append(printable(name) + " ", "dim")
        line.append(number(loss))
    return line


def _evaluations(records: Sequence[EvaluationRecord], rows: int, options: ConsoleOptions) -> Table:
    score = "return" if all(record.win_rate is None for record in records) else "win rate"
    table = _Table(options, "evaluation", score, "95% CI", "games", "at step")
    for record in records[-rows:]:
        table.add(
            _text(record.opponent or "no opponent"),
            Text(score_text(record), "bold"),
            Text(interval_text(record)),
            Text(count(record.games)),
            Text(count(record.step)),
        )
    return table.table


def _league(records: Sequence[RatingRecord], rows: int, options: ConsoleOptions) -> Table:
    table = _Table(options, "league", "rating", "deviation", "mean", "games")
    best = sorted(records, key=lambda record: record.rating, reverse=True)
    for record in best[:rows]:
        table.add(
            _text(record.player, "bold" if record.role == "main" else ""),
            Text(f"{record.rating:.1f}", "bold"),
            Text(f"{record.deviation:.1f}"),
            Text(f"{record.mean:.1f}"),
            Text(count(record.games)),
        )
    if len(best) > rows:
        table.add(Text(f"and {len(best) - rows} more", "dim"))
    return table.table


class _Table:
    """A table that omits its last columns on narrow consoles."""

    def __init__(self, options: ConsoleOptions, first: str, *others: str) -> None:
        self._columns = 5 if options.max_width >= _MEDIUM else 3
        self.table = Table(
            box=box.SIMPLE_HEAD, header_style="dim", padding=(0, 1), pad_edge=False, show_edge=False
        )
        self.table.add_column(first, no_wrap=True, ratio=1)
        for other in others[: self._columns - 1]:
            self.table.add_column(other, justify="right", no_wrap=True)

    def add(self, *cells: Text) -> None:
        self.table.add_row(*cells[: self._columns])
