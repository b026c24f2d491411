"""Shoal as it comes, in every cell against the peer that is the best one there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from itertools import product
from pathlib import Path
from textwrap import fill
from typing import Any, NamedTuple

from benchmarks.contenders import CONTENDERS
from benchmarks.files import write_results
from benchmarks.render import bullets, failure_notes, markdown_document, ratio_text
from benchmarks.runner import Runner
from shoal._bench import machine
from shoal._bench.results import SUBJECT, Cell, Report, by_workload
from shoal._bench.runner import Settings
from shoal._bench.tables import Table, markdown, plain

__all__ = ["Standing", "measure_cells", "standing", "standings_table"]

_PEERS = (
    "gymnasium-sync",
    "gymnasium-async",
    "sb3-dummy",
    "sb3-subproc",
    "pufferlib-serial",
    "pufferlib-mp",
)

_LEGEND = (
    "How many times faster Shoal is, as it comes, than the peer with the highest median rate in "
    "the cell: the median over rounds of the ratio within a round. Columns: how many environments."
)


class Standing(NamedTuple):
    """How Shoal stands in a cell: the best peer, and Shoal's rate over that one's.

    Either is none where nothing was measured.
    """

    cell: Cell
    best: str | None
    ratio: float | None

    @property
    def is_behind(self) -> bool:
        """Whether the best peer is faster than Shoal."""
        return self.ratio is not None and self.ratio < 1.0

    def as_json(self) -> dict[str, Any]:
        """Give the standing as plain data."""
        return {
            "workload": self.cell.workload,
            "num_envs": self.cell.num_envs,
            "best": self.best,
            "ratio": self.ratio,
        }


def measure_cells(
    workloads: Sequence[str], num_envs: Sequence[int], settings: Settings, output: Path
) -> None:
    """Measure all cells, print where Shoal stands, and write ``cells`` as JSON and Markdown."""
    here = machine.describe()
    with Runner([CONTENDERS[name] for name in (SUBJECT, *_PEERS)], settings) as runner:
        cells = runner.measure_all(list(product(workloads, num_envs)))
    report = Report(here, asdict(settings), runner.versions, cells)
    standings = [standing(cell) for cell in cells]
    print(f"{_document(standings, plain)}\n\n{fill(_LEGEND, 100)}")
    data = {**report.as_json(), "standings": [each.as_json() for each in standings]}
    document = markdown_document("Cells", report, _LEGEND, _document(standings, markdown))
    write_results(output, "cells", data, document)


def standing(cell: Cell) -> Standing:
    """Find the best peer of a cell, and compare Shoal with it."""
    best = cell.best(_PEERS)
    return Standing(cell, best, None if best is None else cell.ratio(best))


def standings_table(standings: Sequence[Standing]) -> Table:
    """Lay out standings: a row for each workload, a column for each number of environments."""
    texts = {(each.cell.workload, each.cell.num_envs): _text(each) for each in standings}
    cells = [each.cell for each in standings]
    counts = list(dict.fromkeys(cell.num_envs for cell in cells))
    rows = [
        [workload, *(texts[workload, count] for count in counts)] for workload in by_workload(cells)
    ]
    return Table(["", *map(str, counts)], rows)


def _text(each: Standing) -> str:
    if each.best is None:
        return "no peer"
    if each.ratio is None:
        return f"failed {each.best}"
    return f"{ratio_text(each.cell, each.best)} {each.best}"


def _document(standings: Sequence[Standing], draw: Callable[[Table], str]) -> str:
    behind = [
        f"{each.cell.workload} {each.cell.num_envs}: {each.ratio:.3f} of {each.best}; "
        f"{each.cell.notes[SUBJECT]}"
        for each in standings
        if each.is_behind
    ]
    parts = [
        draw(standings_table(standings)),
        f"Below 1.0: {len(behind)} of {len(standings)} cells.",
        bullets(behind),
        bullets(failure_notes([each.cell for each in standings])),
    ]
    return "\n\n".join(part for part in parts if part)
