"""The terminal display of ``shoal watch``: the state of a vector."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from shoal._formatting import (
    count,
    draw_line,
    duration,
    number,
    percent,
    printable,
    short_time,
    speed,
)

__all__ = ["Screen"]

_REFRESH = 1.0
"""Seconds between updates of the display: each takes some milliseconds of the stepping thread."""

_LINES_REFRESH = 2.0
_CURVE_WIDTH = 40
_WIDE = 80
_MAX_WORKERS, _MAX_ENTRIES = 12, 6
_STYLES = {"crash": "red", "error": "red", "restart": "yellow", "end": "bold"}


class Screen:
    """Displays states: in place in a terminal, otherwise as a line every few seconds.

    As a context manager, it restores the terminal on exit.

    Args:
        console: The console to write to.
        link: The address of the page, if there is one.
    """

    def __init__(self, console: Console, link: str | None = None) -> None:
        self._console = console
        self._link = link
        self._is_live = console.is_terminal and not console.is_dumb_terminal
        self._live = Live(console=console, auto_refresh=False)
        self._log: list[dict[str, Any]] = []
        self.newest_entry = 0
        """The number of the newest log entry that was shown."""
        self._next = 0.0

    @property
    def is_due(self) -> bool:
        """Whether the display is due for an update."""
        return time.monotonic() >= self._next

    def show(self, state: dict[str, Any]) -> None:
        """Show a state whose log starts after the newest entry that was shown."""
        self._next = time.monotonic() + (_REFRESH if self._is_live else _LINES_REFRESH)
        self._log += state["log"]
        if self._log:
            self.newest_entry = self._log[-1]["n"]
        if self._is_live:
            panel = _panel(state, self._log, self._link, self._console.width)
            self._live.update(panel, refresh=True)
            return
        self._print_log(state)
        if state["batches"]:
            self._print(_line(state, state["rate"]["now"] or 0))

    def show_summary(self, state: dict[str, Any], seconds: float) -> None:
        """Print a last line with the totals; in a terminal, do nothing."""
        if not self._is_live:
            self._print_log(state)
            total = _line(state, state["steps"] / max(seconds, 1e-9))
            elapsed = short_time(seconds) if seconds < 1 else duration(seconds)
            self._print(f"In {elapsed}: {total}")

    def _print_log(self, state: dict[str, Any]) -> None:
        for entry in state["log"]:
            self._print(f"{entry['kind']}: {entry['text']}")

    def _print(self, text: str) -> None:
        self._console.print(Text(printable(text)), soft_wrap=True)

    def __enter__(self) -> Screen:
        if self._is_live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._is_live:
            self._live.stop()


def _line(state: dict[str, Any], rate: float) -> str:
    parts = [
        f"{speed(rate)} steps/s",
        f"{count(state['steps'])} steps",
        f"{count(state['episodes'])} episodes",
    ]
    if state["returns"]["mean"] is not None:
        parts.append(f"mean return {number(state['returns']['mean'])}")
    return ", ".join(parts)


def _panel(state: dict[str, Any], log: list[dict[str, Any]], link: str | None, width: int) -> Panel:
    parts: list[RenderableType] = [_text(state["plan"], "dim"), Text(), _figures(state), Text()]
    parts += [_workers(state["workers"], width >= _WIDE), Text(), _entries(log)]
    subtitle = Text("Ctrl-C to stop", "dim") if link is None else Text(link, "cyan underline")
    return Panel(
        Group(*parts),
        title=_text(state["title"], "bold"),
        subtitle=subtitle,
        box=box.ROUNDED,
        border_style="blue",
    )


def _figures(state: dict[str, Any]) -> Table:
    rates, returns, times = state["rate"], state["returns"], state["step_times"]
    grid = Table.grid(padding=(0, 2))
    for style in ("dim", "bold", "green"):
        grid.add_column(style=style, no_wrap=True)
    curve = draw_line([point[1] for point in rates["history"]], _CURVE_WIDTH)
    grid.add_row("steps/s", "-" if rates["now"] is None else speed(rates["now"]), curve)
    curve = draw_line([point[1] for point in returns["history"]], _CURVE_WIDTH)
    grid.add_row("mean return", number(returns["mean"]), curve)
    grid.add_row("steps", count(state["steps"]), "")
    episodes = f"{count(state['episodes'])} (mean length {number(returns['length'])})"
    grid.add_row("episodes", episodes, "")
    if state["wins"] is not None:
        grid.add_row("win rate", percent(state["wins"]["rate"]), "")
    median, p99 = short_time(times["median"]), short_time(times["p99"])
    grid.add_row("batch time", f"{median} median, {p99} p99", "")
    grid.add_row("elapsed", duration(state["now"] - state["started"]), "")
    return grid


def _workers(workers: list[dict[str, Any]], is_wide: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("worker", "slots", "load", "", "restarts", *(["location"] if is_wide else [])):
        table.add_column(name, no_wrap=True)
    for worker in workers[:_MAX_WORKERS]:
        load, (first, last) = worker["load"], worker["slots"]
        shown, width = min(1.0, load or 0.0), 16 if is_wide else 6
        table.add_row(
            _text(worker["name"]),
            str(first) if first == last else f"{first} to {last}",
            ProgressBar(total=1.0, completed=shown, width=width, complete_style="cyan"),
            percent(load),
            Text(str(worker["restarts"]), "yellow" if worker["restarts"] else "dim"),
            *([_text(worker["location"])] if is_wide else []),
        )
    if len(workers) > _MAX_WORKERS:
        table.add_row(f"and {len(workers) - _MAX_WORKERS} more")
    return table


def _entries(log: list[dict[str, Any]]) -> Table:
    table = Table.grid(padding=(0, 1))
    for entry in log[-_MAX_ENTRIES:]:
        when = datetime.fromtimestamp(entry["time"]).strftime("%H:%M:%S")
        style = _STYLES.get(entry["kind"], "")
        table.add_row(
            Text(when, "dim"), Text(entry["kind"], style or "cyan"), _text(entry["text"], style)
        )
    return table


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style, overflow="ellipsis")
