"""Tells of a run as it goes on, wherever it is to be told: logs, a board, a display, a report."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from shoal.errors import MissingExtraError
from shoal.train._records import EpisodeRecord, EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.display import Display, make_display
from shoal.train._reporting.log_reader import read_run
from shoal.train._reporting.logs import RunLogs
from shoal.train._reporting.plots import PlotError, write_plots
from shoal.train._reporting.report import write_report
from shoal.train._reporting.tensorboard import open_board
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["Reporter"]


class Reporter:
    """Writes logs and, if wanted, a board, shows how the run is doing, and reports in the end.

    A context manager closes it, which leaves the terminal as it was.

    Args:
        folder: Of the run.
        title: The name of the run.
        phases: The names of its phases.
        verbose: Whether anything is shown.
        tensorboard: Whether scalars are written for TensorBoard, if that is installed.
        cut_to: For a run that goes on: what ``positions`` told when the checkpoint was made. What
            was logged later is removed. A log that cannot be cut, since it has been removed or
            changed, is appended to as it is, with a warning.
        resumed_step: At which step such a run goes on.
        displays: What else shows how the run is doing. They are closed with it.

    Example:
        >>> import tempfile
        >>> from shoal.train._records import EpisodeRecord
        >>> folder = Path(tempfile.mkdtemp())
        >>> with Reporter(folder, "run", ["only"], verbose=False, tensorboard=False) as reporter:
        ...     reporter.episodes([EpisodeRecord(80, 1, "only", 0, 80, 1.5, 1.5, "", None)])
        ...     reporter.finish({"episodes": 1}, {"seed": 0}).name
        'report.html'
    """

    def __init__(
        self,
        folder: Path,
        title: str,
        phases: Sequence[str],
        *,
        verbose: bool,
        tensorboard: bool = True,
        cut_to: Mapping[str, int] | None = None,
        resumed_step: int = 0,
        displays: Sequence[Display] = (),
    ) -> None:
        self.folder = folder
        self.title = title
        self._phases = list(phases)
        self._displays = list(displays)
        purge_step = None if cut_to is None else resumed_step + 1
        with ExitStack() as opened:
            opened.callback(self._close_displays)
            self._logs = RunLogs(folder)
            opened.callback(self._logs.close)
            for name, position in (cut_to or {}).items():
                self._cut(name, position)
            self._board = open_board(folder, purge_step) if tensorboard else None
            if self._board is not None:
                opened.callback(self._board.close)
            self._displays.append(make_display(verbose, title, phases))
            self._opened = opened.pop_all()

    def begin(self, envs: VectorEnv) -> None:
        """Tell with which environments the run begins, or goes on."""
        self._show(lambda display: display.begin(self.title, self._phases, envs))

    def episodes(self, records: Sequence[EpisodeRecord]) -> None:
        """Tell of episodes that have ended. This may be called often."""
        self._logs.episodes.append(records)

    def progress(self, record: ProgressRecord) -> None:
        """Tell how far the run is."""
        self._logs.progress.append([record])
        if self._board is not None:
            self._board.progress(record)
        self._show(lambda display: display.progress(record))

    def evaluation(self, record: EvaluationRecord) -> None:
        """Tell what came of an evaluation."""
        self._logs.evaluations.append([record])
        if self._board is not None:
            self._board.evaluation(record)
        self._show(lambda display: display.evaluation(record))

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Tell how strong the players of the league are: all of them."""
        self._logs.ratings.append(records)
        if self._board is not None:
            self._board.ratings(records)
        self._show(lambda display: display.ratings(records))

    def note(self, text: str) -> None:
        """Tell people something, such as that a checkpoint was saved."""
        self._show(lambda display: display.note(text))

    def positions(self) -> dict[str, int]:
        """Where the logs end, for a checkpoint: see ``cut_to``."""
        return self._logs.positions()

    def finish(self, summary: Mapping[str, Any], config: Mapping[str, Any]) -> Path:
        """Draw plots, write the report, and return its path.

        A plot that cannot be drawn is missing in the report, with a warning.

        Args:
            summary: The figures at the top of the report.
            config: With what the run was made.
        """
        self._logs.positions()
        try:
            write_plots(self.folder / "plots", read_run(self.folder))
        except (MissingExtraError, PlotError, OSError, ValueError) as error:
            warnings.warn(f"the report lacks plots: {error}", RuntimeWarning, stacklevel=2)
        path = write_report(self.folder, summary, config, title=self.title)
        self.note(f"report: {path}")
        return path

    def close(self) -> None:
        """Write what is left, and leave the terminal as it was. Closing twice does no harm."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _cut(self, name: str, position: int) -> None:
        try:
            self._logs.cut({name: position})
        except ValueError as error:
            warnings.warn(f"a log goes on as it is: {error}", RuntimeWarning, stacklevel=3)

    def _show(self, show: Callable[[Display], None]) -> None:
        for display in list(self._displays):
            try:
                show(display)
            except OSError as error:  # the terminal is gone, which is no reason to end the run
                self._displays.remove(display)
                _closed(display)
                warnings.warn(f"nothing is shown any more: {error}", RuntimeWarning, stacklevel=3)

    def _close_displays(self) -> None:
        for display in self._displays:
            _closed(display)


def _closed(display: Display) -> None:
    with suppress(OSError):
        display.close()
