"""The progress display of a run in a terminal."""

from __future__ import annotations

import sys
import time
import weakref
from collections.abc import Callable, Sequence

from shoal.errors import MissingExtraError

try:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text
except ImportError as error:
    raise MissingExtraError(
        'the progress display requires rich, which is not installed: pip install "shoal[train]"'
    ) from error

from shoal._formatting import printable
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.panels import RunPanel
from shoal.train._reporting.plain import Display, PlainDisplay, SilentDisplay

__all__ = ["Display", "LiveDisplay", "PlainDisplay", "SilentDisplay", "make_display"]

_REFRESH_SECONDS = 0.5


class LiveDisplay(Display):
    """A panel at the bottom of the terminal that is updated with new records.

    Printed lines appear above the panel. ``close`` and the end of the program restore the terminal.

    Args:
        title: The name of the run.
        phases: The names of its phases.
        goal: The purpose or the length of the run; may be empty.
        console: A console that supports Unicode; by default that of the standard output.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        title: str,
        phases: Sequence[str],
        goal: str = "",
        *,
        console: Console | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._panel = RunPanel(title, list(phases), goal)
        self._console = console or Console()
        self._clock = clock
        # Refreshed when a record arrives: a refresh thread would compete with training for the GIL.
        self._live = Live(self._panel, console=self._console, auto_refresh=False)
        self._stop = weakref.finalize(self, self._live.stop)
        self._live.start()
        self._live.refresh()
        self._refreshed = clock()

    def progress(self, record: ProgressRecord) -> None:
        """Show the progress of the run."""
        self._panel.latest = record
        self._panel.returns.add(record.mean_reward)
        self._refresh()

    def evaluation(self, record: EvaluationRecord) -> None:
        """Show the result of an evaluation, in place of an older one with the same opponent."""
        self._panel.evaluations.pop(record.opponent, None)
        self._panel.evaluations[record.opponent] = record
        self._refresh()

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Show the ratings of all players of the league."""
        self._panel.ratings = list(records)
        self._refresh()

    def note(self, text: str) -> None:
        """Print lines above the panel."""
        for line in text.splitlines():
            self._console.print(Text(printable(line)))

    def close(self) -> None:
        """Show the latest records and restore the terminal. May be called more than once."""
        self._stop()

    def _refresh(self) -> None:
        if self._clock() - self._refreshed >= _REFRESH_SECONDS:
            self._live.refresh()
            self._refreshed = self._clock()


def make_display(verbose: bool, title: str, phases: Sequence[str], goal: str = "") -> Display:
    """Return the display that suits the standard output.

    Args:
        verbose: Whether to show anything.
        title: The name of the run.
        phases: The names of its phases.
        goal: The purpose or the length of the run; may be empty.
    """
    if not verbose:
        return SilentDisplay()
    if sys.stdout is not None and sys.stdout.isatty():
        console = Console()
        has_cursor = console.is_terminal and not console.is_dumb_terminal
        if has_cursor and not console.options.ascii_only:
            return LiveDisplay(title, phases, goal, console=console)
    return PlainDisplay(title, phases)
