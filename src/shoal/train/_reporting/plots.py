"""Plots of a run, as PNG files."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import MissingExtraError
from shoal.train._reporting.log_reader import RunRecords

__all__ = ["PlotError", "write_plots"]

_FAILURES = (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError)


class PlotError(RuntimeError):
    """Some plots could not be drawn; the others were. The message says which and why."""


def write_plots(folder: Path, records: RunRecords) -> list[Path]:
    """Draw what there is to draw, and return the files that were written.

    Args:
        folder: Where they go; it is made if it is not there.
        records: Of the run, as ``read_run`` reads them.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        PlotError: Some could not be drawn.
    """
    try:
        from matplotlib import style

        from shoal.train._reporting import charts, comparisons
        from shoal.train._reporting.style import STYLE
    except ImportError as error:
        raise MissingExtraError(
            'plots need matplotlib, which is not installed: pip install "shoal[train]"'
        ) from error

    folder.mkdir(parents=True, exist_ok=True)
    written = []
    failed: dict[str, Exception] = {}
    for name, draw in (
        ("learning_curve", charts.learning_curve),
        ("win_rates", comparisons.win_rates),
        ("evaluations", comparisons.evaluations),
        ("ratings", comparisons.ratings),
        ("losses", charts.losses),
        ("throughput", charts.throughput),
    ):
        path = folder / f"{name}.png"
        try:
            # Whatever the user has set for plots of their own is not for these.
            with style.context(["default", STYLE]):
                figure = draw(records)
                if figure is not None:
                    figure.savefig(path)
                    written.append(path)
        except _FAILURES as error:
            failed[name] = error
    if failed:
        told = "; ".join(f"{name}: {error}" for name, error in failed.items())
        raise PlotError(told) from next(iter(failed.values()))
    return written
