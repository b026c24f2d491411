"""The report of ``shoal bench``: tables for people, and recommendations as data."""

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
    "steps/s: median of the rounds; ±: half the interquartile range; vs: speed ratio, median of "
    "the ratios within a round."
)


def recommendations(
    comparison: Comparison, imports: str, source: str, arguments: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Return the recommendation for each number of environments, as plain data.

    Args:
        comparison: The measurements.
        imports: The line that imports the environment; empty if it needs none.
        source: The expression for the environment.
        arguments: Arguments of the environment's constructor.
    """
    return [
        {
            "num_envs": outcome.cell.num_envs,
            **_options(comparison, outcome),
            "contender": outcome.advice.recommended,
            "sure": outcome.advice.is_sure,
            "why": explanation(outcome),
            "import": imports or None,
            "call": _call(comparison, outcome, source, arguments),
        }
        for outcome in comparison.outcomes
        if outcome.advice is not None
    ]


def show(
    console: Console,
    comparison: Comparison,
    imports: str,
    source: str,
    arguments: Mapping[str, Any],
    plot: Path | None,
) -> None:
    """Print tables with bars, failures and warnings, and the recommendations."""
    console.print(Text(_about(comparison)))
    for outcome in comparison.outcomes:
        console.print(_table(outcome))
        console.print()
        for name, reason in outcome.cell.failures.items():
            console.print(Text(f"{label(name)} failed: {reason}", "red"))
    for name, reason in comparison.selection.skipped.items():
        console.print(Text(f"{name} skipped: {reason}", "yellow"))
    for warning in comparison.profile.warnings():  # the panels show the doubts
        console.print(Text(warning, "yellow"))
    console.print(Text(_LEGEND, "dim"))
    for outcome in comparison.outcomes:
        console.print(_panel(comparison, outcome, imports, source, arguments))
    if plot is not None:
        console.print(Text(f"Plot saved to {plot}"), soft_wrap=True)


def _about(comparison: Comparison) -> str:
    profile, machine = comparison.profile, comparison.report.machine
    waits = (
        "" if profile.busy == profile.step else f" ({1 - profile.busy / profile.step:.0%} waiting)"
    )
    return (
        f"{machine['cpu']}, {machine['cores']} cores. One step takes {short_time(profile.step)}"
        f"{waits}; an observation is {size(profile.observation_bytes)}.\n"
    )


def _table(outcome: CellResult) -> Table:
    cell, advice = outcome.cell, outcome.advice
    table = Table(
        # Text objects, because rich would parse brackets in strings as markup.
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
    baselines = [(LOOP, "vs loop"), (outcome.best_peer, "vs best peer")]
    baselines = [(name, title) for name, title in baselines if name in cell.rates]
    for name in ("steps/s", "±", *(title for _, title in baselines)):
        table.add_column(name, justify="right", no_wrap=True, header_style="dim")
    summaries = {name: summarize(rates) for name, rates in cell.rates.items()}
    ranked = sorted(summaries, key=lambda name: summaries[name].median, reverse=True)
    for name in ranked:
        summary = summaries[name]
        color = _OURS if name.startswith(SUBJECT) else _OTHERS
        is_chosen = advice is not None and name == advice.recommended
        table.add_row(
            Text(f"{'▶' if is_chosen else ' '} {label(name)}", "bold" if is_chosen else ""),
            Bar(summaries[ranked[0]].median, 0, summary.median, color=color),
            short_number(summary.median),
            f"{summary.spread:.0%}" if len(cell.rates[name]) > 1 else "-",
            *(_ratio(outcome, name, baseline) for baseline, _ in baselines),
        )
    return table


def _notes(cell: Cell) -> list[str]:
    plan = [f"{label(SUBJECT)}: {cell.notes[SUBJECT]}"] if SUBJECT in cell.notes else []
    return plan + [f"{label(name)} is the same as {label(o)}" for name, o in cell.same_as.items()]


def _ratio(outcome: CellResult, name: str, other: str | None) -> str:
    speedup = outcome.speedup(name, other)
    return "" if speedup is None or name == other else ratio(speedup)


def _panel(
    comparison: Comparison,
    outcome: CellResult,
    imports: str,
    source: str,
    arguments: Mapping[str, Any],
) -> RenderableType:
    grid = Table.grid()
    grid.add_column()
    grid.add_row(Text(explanation(outcome)))
    for doubt in comparison.doubts:
        grid.add_row(Text(doubt, "yellow"))
    if outcome.advice is not None:
        lines = [imports, _call(comparison, outcome, source, arguments)]
        code = "\n".join(line for line in lines if line)
        syntax = Syntax(code, "python", theme="ansi_dark", background_color="default")
        grid.add_row(Padding(syntax, (1, 0, 0, 0)))
    count = outcome.cell.num_envs
    title = f"Recommended for {count} environment{'' if count == 1 else 's'}"
    return Panel(grid, title=title, title_align="left", border_style=_OURS)


def _options(comparison: Comparison, outcome: CellResult) -> dict[str, Any]:
    """Return the options of the recommended configuration."""
    configurations = {each.name: each.options for each in comparison.selection.configurations}
    return {} if outcome.advice is None else dict(configurations[outcome.advice.recommended])


def _call(
    comparison: Comparison, outcome: CellResult, what: str, arguments: Mapping[str, Any]
) -> str:
    return call_of(what, outcome.cell.num_envs, _options(comparison, outcome), arguments)
