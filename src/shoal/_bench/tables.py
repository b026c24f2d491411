"""Text tables for the terminal and for Markdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Table", "markdown", "plain", "short_number"]


@dataclass
class Table:
    """Rows with a header. The first column holds names, the others hold numbers."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


def plain(table: Table) -> str:
    """Format a table for the terminal."""
    header, *rows = _aligned(table)
    rule = ["─" * len(text) for text in header]
    return "\n".join("  ".join(row).rstrip() for row in (header, rule, *rows))


def markdown(table: Table) -> str:
    """Format a table in Markdown."""
    header, *rows = _aligned(table)
    rule = [
        "-" * len(text) if column == 0 else "-" * (len(text) - 1) + ":"
        for column, text in enumerate(header)
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def short_number(value: float) -> str:
    """Format a number with three significant digits: 1.23 M, 45.6 k, 789."""
    rounded = float(f"{value:.3g}")
    units = ((1e6, " M"), (1e3, " k"))
    unit, suffix = next((each for each in units if rounded >= each[0]), (1.0, ""))
    return f"{rounded / unit:#.3g}".rstrip(".") + suffix


def _aligned(table: Table) -> Iterator[list[str]]:
    lines = [table.header, *table.rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        yield [
            text.rjust(width) if column else text.ljust(width)
            for column, (text, width) in enumerate(zip(line, widths, strict=True))
        ]
