"""Shows in the terminal how a run is doing."""

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
        'displays need rich, which is not installed: pip install "shoal[train]"'
    ) from error

from shoal._formatting import printable
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.panels import Standing
from shoal.train._reporting.plain import Display, PlainDisplay, SilentDisplay

__all__ = ["Display", "LiveDisplay", "PlainDisplay", "SilentDisplay", "make_display"]

_SECONDS_BETWEEN_PICTURES = 0.5


class LiveDisplay(Display):
    """A picture of the run at the bottom of the terminal, drawn again as records come.

    Lines that are printed meanwhile stand above it. The terminal is as it was after ``close``, or
    at the end of the program.

    Args:
        title: The name of the run.
        phases: The names of its phases.
        goal: What the run is for, or how long it is; may be empty.
        console: Where it is shown, a terminal that knows Unicode; by default the one there is.
        clock: What time it is, in seconds.
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
        self._standing = Standing(title, list(phases), goal)
        self._console = console or Console()
        self._clock = clock
        # Drawn by who brings records, not by a thread: that would take the GIL from the training.
        self._live = Live(self._standing, console=self._console, auto_refresh=False)
        self._stop = weakref.finalize(self, self._live.stop)
        self._live.start()
        self._live.refresh()
        self._drawn = clock()

    def progress(self, record: ProgressRecord) -> None:
        """Show how far the run is."""
        self._standing.newest = record
        self._standing.returns.add(record.mean_reward)
        self._draw()

    def evaluation(self, record: EvaluationRecord) -> None:
        """Show what came of an evaluation, until there is a newer one of the same opponent."""
        self._standing.evaluations.pop(record.opponent, None)
        self._standing.evaluations[record.opponent] = record
        self._draw()

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Show the league: all of its players."""
        self._standing.ratings = list(records)
        self._draw()

    def note(self, text: str) -> None:
        """Print lines above the picture."""
        for line in text.splitlines():
            self._console.print(Text(printable(line)))

    def close(self) -> None:
        """Draw the newest picture, and leave it there. Closing twice does no harm."""
        self._stop()

    def _draw(self) -> None:
        if self._clock() - self._drawn >= _SECONDS_BETWEEN_PICTURES:
            self._live.refresh()
            self._drawn = self._clock()


def make_display(verbose: bool, title: str, phases: Sequence[str], goal: str = "") -> Display:
    """The display that fits where this program runs.

    Args:
        verbose: Whether anything is shown at all.
        title: The name of the run.
        phases: The names of its phases.
        goal: What the run is for, or how long it is; may be empty.
    """
    if not verbose:
        return SilentDisplay()
    if sys.stdout is not None and sys.stdout.isatty():
        console = Console()
        able = console.is_terminal and not console.is_dumb_terminal
        if able and not console.options.ascii_only:
            return LiveDisplay(title, phases, goal, console=console)
    return PlainDisplay(title, phases)
