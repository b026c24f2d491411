"""Displays that need no terminal: lines of text, or nothing at all."""

from __future__ import annotations

import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from shoal._formatting import clamp_share, count, duration, number, percent, printable, speed
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.formatting import interval, measured, remaining_seconds
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["Display", "PlainDisplay", "SilentDisplay"]

_PLAYERS_SHOWN = 5


class Display(ABC):
    """Shows people how a run is doing, until it is closed. A context manager closes it."""

    def begin(self, title: str, phases: Sequence[str], envs: VectorEnv) -> None:  # noqa: ARG002
        """Show with which environments a run of these phases begins, or goes on."""
        if envs.plan is not None:
            self.note(str(envs.plan))

    @abstractmethod
    def progress(self, record: ProgressRecord) -> None:
        """Show how far the run is."""

    @abstractmethod
    def evaluation(self, record: EvaluationRecord) -> None:
        """Show what came of an evaluation."""

    @abstractmethod
    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Show the league: all of its players."""

    @abstractmethod
    def note(self, text: str) -> None:
        """Show a line that stays, such as that a checkpoint was saved."""

    @abstractmethod
    def close(self) -> None:
        """Show what is left, and leave the terminal as it was. Closing twice does no harm."""

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
    """Shows nothing."""

    def progress(self, record: ProgressRecord) -> None:
        """Show nothing."""

    def evaluation(self, record: EvaluationRecord) -> None:
        """Show nothing."""

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Nothing is left."""


class PlainDisplay(Display):
    """Prints lines: for files, pipes and notebooks.

    Args:
        title: The name of the run.
        phases: The names of its phases.
        every: How many seconds lie between two lines of progress, at least.
        clock: What time it is, in seconds.

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
        self._printed: float | None = None
        self._unprinted: ProgressRecord | None = None

    def progress(self, record: ProgressRecord) -> None:
        """Print how far the run is, unless that was told a moment ago and there is more to come."""
        now = self._clock()
        due = self._printed is None or now - self._printed >= self._every
        if not due and record.share < 1:
            self._unprinted = record
            return
        self._printed, self._unprinted = now, None
        self.note(self._line(record))

    def evaluation(self, record: EvaluationRecord) -> None:
        """Print what came of an evaluation."""
        against = f" against {record.opponent}" if record.opponent else ""
        what = "mean return" if record.win_rate is None else "won"
        self.note(
            f"evaluation{against}: {what} {measured(record)} ({interval(record)}) in "
            f"{count(record.games)} games"
        )

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Print who leads the league."""
        if not records:
            return
        best = sorted(records, key=lambda record: record.rating, reverse=True)[:_PLAYERS_SHOWN]
        table = ", ".join(f"{record.player} {record.rating:.1f}" for record in best)
        self.note(f"league: {table}")

    def note(self, text: str) -> None:
        """Print lines, after which older progress is no news."""
        self._unprinted = None
        encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
        for line in text.splitlines():
            print(printable(f"[{self.title}] {line}", encoding), flush=True)

    def close(self) -> None:
        """Print the newest progress, if that was not done."""
        record, self._unprinted = self._unprinted, None
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
            parts.append(f"wins {percent(record.win_rate)}")
        return " | ".join([*parts, f"{duration(remaining_seconds(record))} left"])
