"""Draw the plots of a run as PNG files."""

from __future__ import annotations

from pathlib import Path

from shoal.errors import MissingExtraError
from shoal.train._reporting.log_reader import RunRecords

__all__ = ["PlotError", "write_plots"]

_FAILURES = (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError)


class PlotError(RuntimeError):
    """Some plots could not be drawn. The message names them and the reasons; the others exist."""


def write_plots(folder: Path, records: RunRecords) -> list[Path]:
    """Draw the plots for which there is data, and return the files.

    Args:
        folder: The folder of the files; it is created if it does not exist.
        records: The records of the run, from ``read_run``.

    Raises:
        MissingExtraError: Matplotlib is not installed.
        PlotError: Some plots could not be drawn.
    """
    try:
        from matplotlib import style

        from shoal.train._reporting import charts, comparisons
        from shoal.train._reporting.style import STYLE
    except ImportError as error:
        raise MissingExtraError(
            'plots require matplotlib, which is not installed: pip install "shoal[train]"'
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
            # The user's matplotlib settings do not apply to these plots.
            with style.context(["default", STYLE]):
                figure = draw(records)
                if figure is not None:
                    figure.savefig(path)
                    written.append(path)
        except _FAILURES as error:
            failed[name] = error
    if failed:
        problems = "; ".join(f"{name}: {error}" for name, error in failed.items())
        raise PlotError(problems) from next(iter(failed.values()))
    return written
