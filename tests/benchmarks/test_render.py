"""Reports as text and as Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.figures import Figure, Verdict
from benchmarks.render import as_markdown, as_text, figures_table
from shoal._bench.results import Cell, Report, paired_ratio, summarize
from shoal._bench.tables import short_number


def test_summary_is_the_median_between_the_quartiles() -> None:
    summary = summarize([5.0, 1.0, 3.0, 2.0, 4.0])
    assert summary == (3.0, 2.0, 4.0)
    assert summary.spread == pytest.approx(1 / 3)


def test_ratio_is_the_median_of_the_ratios_within_rounds() -> None:
    # The machine slowed down after the first round: the ratio of the medians would be 1.
    assert paired_ratio([100.0, 10.0, 10.0], [50.0, 5.0, 10.0]) == 2.0
    with pytest.raises(ValueError, match="3 rounds cannot be paired with 2"):
        paired_ratio([1.0, 1.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("value", "text"),
    [(1_234_567, "1.23 M"), (999_600, "1.00 M"), (45_600, "45.6 k"), (789.4, "789"), (2, "2.00")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short_number(value) == text


def small_report() -> Report:
    cells = [
        Cell("noop", 8, ["shoal", "loop"], {"shoal": [3e6, 3e6], "loop": [2e6, 1e6]}),
        Cell("noop", 32, ["shoal", "loop"], {"shoal": [3e6, 3e6]}, {"loop": "lost its way"}),
    ]
    machine = {"date": "today", "cpu": "abacus", "cores": 2, "system": "wood"}
    settings = {"rounds": 2, "seconds": 0.25}
    return Report(machine, settings, {"loop": {"python": "3.11.7", "numpy": "2.4.6"}}, cells)


def test_text_shows_rates_ratios_and_failures() -> None:
    lines = as_text(small_report()).splitlines()
    assert lines[:6] == [
        "noop        8 envs     x      32 envs  x",
        "─────  ───────────  ────  ───────────  ─",
        "shoal  3.00 M ± 0%        3.00 M ± 0%",
        "loop   1.50 M ±17%  2.25       failed",
        "",
        "- loop failed (noop 32): lost its way",
    ]


def test_markdown_shows_tables_machine_and_versions() -> None:
    text = as_markdown(small_report())
    assert "today, abacus, 2 cores, wood; 2 interleaved rounds of 0.25 s." in text
    assert "| loop  | 1.50 M ±17% | 2.25 |      failed |   |" in text
    assert "- loop failed (noop 32): lost its way" in text
    assert "- loop: python 3.11.7, numpy 2.4.6" in text


def test_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from shoal._bench import plot

    plot.save(small_report(), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([2.5, 2.0, 3.0], ["2.50", "2.25 to 2.75", "reached"]),
        ([1.5], ["1.50", "", "MISSED"]),
        ([12_345.0, 12_345.0], ["12.3 k", "12.3 k to 12.3 k", "reached"]),
        (None, ["failed", "", "failed"]),
    ],
)
def test_a_figure_is_a_row_with_its_requirement(
    values: list[float] | None, texts: list[str]
) -> None:
    figure = Figure("group", "noop", 8, "shoal", "best peer", "ratio", ">= 2 on 2 cores")
    table = figures_table([Verdict(figure, "sb3-dummy", ">= 2", values)])
    assert table.rows == [["noop", "8", "shoal", "sb3-dummy", "ratio", ">= 2", *texts]]
    assert len(table.header) == len(table.rows[0])
