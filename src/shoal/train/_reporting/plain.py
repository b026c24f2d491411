"""The interface of displays, and displays that do not require a terminal."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from shoal._formatting import clamp_share, count, duration, number, percent, printable, speed
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.formatting import interval_text, remaining_seconds, score_text
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["Display", "PlainDisplay", "SilentDisplay"]

_MAX_PLAYERS = 5


class Display(ABC):
    """Shows the progress of a run. A context manager that closes the display."""

    def begin(self, title: str, phases: Sequence[str], envs: VectorEnv) -> None:  # noqa: ARG002
        """Show the start of a run, or of a resumed run.

        Args:
            title: The name of the run.
            phases: The names of its phases.
            envs: The environments that it trains on.
        """
        if envs.plan is not None:
            self.note(str(envs.plan))

    @abstractmethod
    def progress(self, record: ProgressRecord) -> None:
        """Show the progress of the run."""

    @abstractmethod
    def evaluation(self, record: EvaluationRecord) -> None:
        """Show the result of an evaluation."""

    @abstractmethod
    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Show the ratings of all players of the league."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Show a permanent line, for example that a checkpoint was saved."""

    @abstractmethod
    def close(self) -> None:
        """Show pending records and restore the terminal. May be called more than once."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class SilentDisplay(Display):
    """A display that shows nothing."""

    def progress(self, record: ProgressRecord) -> None:
        """Do nothing."""

    def evaluation(self, record: EvaluationRecord) -> None:
        """Do nothing."""

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Do nothing."""

    def note(self, text: str) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


class PlainDisplay(Display):
    """A display that prints lines, for files, pipes and notebooks.

    Args:
        title: The name of the run.
        phases: The names of its phases.
        every: The minimum number of seconds between two lines of progress.
        clock: Returns the time in seconds.

    Example:
        >>> with PlainDisplay("run", ["only"]) as display:
        ...     display.note("checkpoint saved")
        [run] checkpoint saved
    """

    def __init__(
        self,
        title: str,
        phases: Sequence[str],
        *,
        every: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.title = title
        self.phases = list(phases)
        self._every = every
        self._clock = clock
        self._last_print: float | None = None
        self._pending: ProgressRecord | None = None

    def progress(self, record: ProgressRecord) -> None:
        """Print the progress, unless a line was printed less than ``every`` seconds ago."""
        now = self._clock()
        due = self._last_print is None or now - self._last_print >= self._every
        if not due and record.share < 1:
            self._pending = record
            return
        self._last_print, self._pending = now, None
        self.note(self._line(record))

    def evaluation(self, record: EvaluationRecord) -> None:
        """Print the result of an evaluation."""
        against = f" against {record.opponent}" if record.opponent else ""
        score = "mean return" if record.win_rate is None else "win rate"
        self.note(
            f"evaluation{against}: {score} {score_text(record)} ({interval_text(record)}) in "
            f"{count(record.games)} games"
        )

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Print the best players of the league."""
        if not records:
            return
        best = sorted(records, key=lambda record: record.rating, reverse=True)[:_MAX_PLAYERS]
        table = ", ".join(f"{record.player} {record.rating:.1f}" for record in best)
        self.note(f"league: {table}")

    def note(self, text: str) -> None:
        """Print lines. Older progress that is still pending is discarded."""
        self._pending = None
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        for line in text.splitlines():
            print(printable(f"[{self.title}] {line}", encoding), flush=True)

    def close(self) -> None:
        """Print the latest progress if it is still pending."""
        record, self._pending = self._pending, None
        if record is not None:
            self.note(self._line(record))

    def _line(self, record: ProgressRecord) -> str:
        of_phases = f"{record.phase_number + 1}/{len(self.phases)}"
        parts = [
            percent(clamp_share(record.share)),
            f"phase {of_phases} {record.phase} {percent(clamp_share(record.phase_share))}",
            f"step {count(record.step)}",
            f"{speed(record.steps_per_second)} steps/s",
            f"{speed(record.updates_per_second)} updates/s",
        ]
        if record.mean_reward is not None:
            parts.append(f"return {number(record.mean_reward)}")
        if record.win_rate is not None:
            parts.append(f"win rate {percent(record.win_rate)}")
        return " | ".join([*parts, f"{duration(remaining_seconds(record))} left"])
