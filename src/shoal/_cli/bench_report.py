"""What ``shoal bench`` has found out, as a person sees it and as a program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.bar import Bar
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text

from shoal._bench.comparison import CellResult, Comparison
from shoal._bench.contender_selection import LOOP
from shoal._bench.explanation import call_of, explanation, label, ratio
from shoal._bench.results import SUBJECT, Cell, summarize
from shoal._bench.tables import short_number
from shoal._formatting import short_time, size

__all__ = ["recommendations", "show"]

_OURS, _OTHERS = "cyan", "bright_black"

_LEGEND = (
    "steps/s: the median of the rounds; ±: half the distance between their quartiles; vs: how many "
    "times as fast, the median of the ratios within a round."
)


def recommendations(
    comparison: Comparison, imports: str, what: str, arguments: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Give what is recommended for each number of environments, as plain data.

    Args:
        comparison: What was measured.
        imports: The line that imports the environment, if it takes one.
        what: The expression that then means it.
        arguments: Of its constructor.
    """
    return [
        {
            "num_envs": outcome.cell.num_envs,
            **_options(comparison, outcome),
            "contender": outcome.advice.way,
            "sure": outcome.advice.is_sure,
            "why": explanation(outcome),
            "import": imports or None,
            "call": _call(comparison, outcome, what, arguments),
        }
        for outcome in comparison.outcomes
        if outcome.advice is not None
    ]


def show(
    console: Console,
    comparison: Comparison,
    imports: str,
    what: str,
    arguments: Mapping[str, Any],
    picture: Path | None,
) -> None:
    """Print tables with bars, what went wrong, and what is recommended."""
    console.print(Text(_about(comparison)))
    for outcome in comparison.outcomes:
        console.print(_table(outcome))
        console.print()
        for name, reason in outcome.cell.failures.items():
            console.print(Text(f"{label(name)} failed: {reason}", "red"))
    for name, reason in comparison.field.left_out.items():
        console.print(Text(f"{name} is left out: {reason}", "yellow"))
    for warning in comparison.seen.warnings():  # doubts are where they matter
        console.print(Text(warning, "yellow"))
    console.print(Text(_LEGEND, "dim"))
    for outcome in comparison.outcomes:
        console.print(_panel(comparison, outcome, imports, what, arguments))
    if picture is not None:
        console.print(Text(f"The picture is {picture}."), soft_wrap=True)


def _about(comparison: Comparison) -> str:
    seen, machine = comparison.seen, comparison.report.machine
    waits = "" if seen.busy == seen.step else f" ({1 - seen.busy / seen.step:.0%} waiting)"
    return (
        f"{machine['cpu']}, {machine['cores']} cores. One step takes {short_time(seen.step)}"
        f"{waits}; an observation is {size(seen.observation_bytes)}.\n"
    )


def _table(outcome: CellResult) -> Table:
    cell, advice = outcome.cell, outcome.advice
    table = Table(
        # Not as mere strings: what stands in brackets would be taken for a style.
        title=Text(f"{cell.workload} x {cell.num_envs}", "bold"),
        title_justify="left",
        caption=Text("\n".join(_notes(cell)), "dim"),
        caption_justify="left",
        box=None,
        expand=True,
        padding=(0, 1, 0, 0),
    )
    table.add_column("")
    table.add_column("", ratio=1)
    rivals = [(LOOP, "vs loop"), (outcome.best_peer, "vs best peer")]
    rivals = [(name, title) for name, title in rivals if name in cell.rates]
    for name in ("steps/s", "±", *(title for _, title in rivals)):
        table.add_column(name, justify="right", no_wrap=True, header_style="dim")
    summaries = {name: summarize(rates) for name, rates in cell.rates.items()}
    ranked = sorted(summaries, key=lambda name: summaries[name].median, reverse=True)
    for name in ranked:
        summary = summaries[name]
        color = _OURS if name.startswith(SUBJECT) else _OTHERS
        is_chosen = advice is not None and name == advice.way
        table.add_row(
            Text(f"{'▶' if is_chosen else ' '} {label(name)}", "bold" if is_chosen else ""),
            Bar(summaries[ranked[0]].median, 0, summary.median, color=color),
            short_number(summary.median),
            f"{summary.spread:.0%}" if len(cell.rates[name]) > 1 else "-",
            *(_ratio(outcome, name, rival) for rival, _ in rivals),
        )
    return table


def _notes(cell: Cell) -> list[str]:
    told = [f"{label(SUBJECT)}: {cell.notes[SUBJECT]}"] if SUBJECT in cell.notes else []
    return told + [f"{label(name)} is the same as {label(o)}" for name, o in cell.same_as.items()]


def _ratio(outcome: CellResult, name: str, other: str | None) -> str:
    times = outcome.times(name, other)
    return "" if times is None or name == other else ratio(times)


def _panel(
    comparison: Comparison,
    outcome: CellResult,
    imports: str,
    what: str,
    arguments: Mapping[str, Any],
) -> RenderableType:
    told = Table.grid()
    told.add_column()
    told.add_row(Text(explanation(outcome)))
    for doubt in comparison.doubts:
        told.add_row(Text(doubt, "yellow"))
    if outcome.advice is not None:
        lines = [imports, _call(comparison, outcome, what, arguments)]
        code = "\n".join(line for line in lines if line)
        syntax = Syntax(code, "python", theme="ansi_dark", background_color="default")
        told.add_row(Padding(syntax, (1, 0, 0, 0)))
    count = outcome.cell.num_envs
    title = f"Recommended for {count} environment{'' if count == 1 else 's'}"
    return Panel(told, title=title, title_align="left", border_style=_OURS)


def _options(comparison: Comparison, outcome: CellResult) -> dict[str, Any]:
    """The options of the recommended way."""
    ways = {way.name: way.options for way in comparison.field.ways}
    return {} if outcome.advice is None else dict(ways[outcome.advice.way])


def _call(
    comparison: Comparison, outcome: CellResult, what: str, arguments: Mapping[str, Any]
) -> str:
    return call_of(what, outcome.cell.num_envs, _options(comparison, outcome), arguments)
