"""Sends the records of a run to its logs, TensorBoard, displays and report."""

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
    """Writes the logs of a run, shows its progress, and writes the report at the end.

    A context manager that closes the reporter and restores the terminal.

    Args:
        folder: The folder of the run.
        title: The name of the run.
        phases: The names of its phases.
        verbose: Whether to show the progress in the terminal.
        tensorboard: Whether to write TensorBoard logs, if TensorBoard is installed.
        truncate_to: For a resumed run, the ``positions`` in its checkpoint, to which the logs are
            truncated. A log that cannot be truncated, because it was removed or changed, is
            appended to, with a warning.
        resumed_step: The step at which a resumed run continues.
        displays: Additional displays. They are closed with the reporter.

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
        truncate_to: Mapping[str, int] | None = None,
        resumed_step: int = 0,
        displays: Sequence[Display] = (),
    ) -> None:
        self.folder = folder
        self.title = title
        self._phases = list(phases)
        self._displays = list(displays)
        purge_step = None if truncate_to is None else resumed_step + 1
        with ExitStack() as stack:
            stack.callback(self._close_displays)
            self._logs = RunLogs(folder)
            stack.callback(self._logs.close)
            for name, position in (truncate_to or {}).items():
                self._truncate_log(name, position)
            self._tensorboard = open_board(folder, purge_step) if tensorboard else None
            if self._tensorboard is not None:
                stack.callback(self._tensorboard.close)
            self._displays.append(make_display(verbose, title, phases))
            self._stack = stack.pop_all()

    def begin(self, envs: VectorEnv) -> None:
        """Show the start of a run, or of a resumed run, on these environments."""
        self._show(lambda display: display.begin(self.title, self._phases, envs))

    def episodes(self, records: Sequence[EpisodeRecord]) -> None:
        """Log finished episodes. Cheap enough to call for each step."""
        self._logs.episodes.append(records)

    def progress(self, record: ProgressRecord) -> None:
        """Log and show the progress of the run."""
        self._logs.progress.append([record])
        if self._tensorboard is not None:
            self._tensorboard.progress(record)
        self._show(lambda display: display.progress(record))

    def evaluation(self, record: EvaluationRecord) -> None:
        """Log and show the result of an evaluation."""
        self._logs.evaluations.append([record])
        if self._tensorboard is not None:
            self._tensorboard.evaluation(record)
        self._show(lambda display: display.evaluation(record))

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Log and show the ratings of all players of the league."""
        self._logs.ratings.append(records)
        if self._tensorboard is not None:
            self._tensorboard.ratings(records)
        self._show(lambda display: display.ratings(records))

    def note(self, text: str) -> None:
        """Show a line of text, for example that a checkpoint was saved."""
        self._show(lambda display: display.note(text))

    def positions(self) -> dict[str, int]:
        """Return the sizes of the logs, for a checkpoint: see ``truncate_to``."""
        return self._logs.positions()

    def finish(self, summary: Mapping[str, Any], config: Mapping[str, Any]) -> Path:
        """Draw plots, write the report, and return its path.

        A plot that cannot be drawn is missing from the report, with a warning.

        Args:
            summary: The figures at the top of the report.
            config: The config of the run.
        """
        self._logs.positions()
        try:
            write_plots(self.folder / "plots", read_run(self.folder))
        except (MissingExtraError, PlotError, OSError, ValueError) as error:
            warnings.warn(
                f"plots are missing from the report: {error}", RuntimeWarning, stacklevel=2
            )
        path = write_report(self.folder, summary, config, title=self.title)
        self.note(f"report: {path}")
        return path

    def close(self) -> None:
        """Write buffered records and restore the terminal. May be called more than once."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _truncate_log(self, name: str, position: int) -> None:
        try:
            self._logs.truncate({name: position})
        except ValueError as error:
            warnings.warn(
                f"a log was not truncated to the checkpoint: {error}", RuntimeWarning, stacklevel=3
            )

    def _show(self, show: Callable[[Display], None]) -> None:
        for display in list(self._displays):
            try:
                show(display)
            except OSError as error:  # a closed terminal must not end the run
                self._displays.remove(display)
                _close_quietly(display)
                warnings.warn(
                    f"the display failed and was closed: {error}", RuntimeWarning, stacklevel=3
                )

    def _close_displays(self) -> None:
        for display in self._displays:
            _close_quietly(display)


def _close_quietly(display: Display) -> None:
    with suppress(OSError):
        display.close()
