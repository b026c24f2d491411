"""The page of a training run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, cast, get_args

from shoal.live._attach import DEFAULT_PICTURE_SHARE
from shoal.live._event_log import EventKind
from shoal.live._history import History
from shoal.live._live_page import LivePage
from shoal.live._watcher import DEFAULT_REFRESH, Watcher
from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting import Display
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["TrainingPage"]


class TrainingPage(Display):
    """Shows a run and its environments on a page.

    Args:
        host: The address to listen on; the default accepts only connections from this machine.
        port: The port; by default 7788, or any free port if that one is in use.
        picture_share: The maximum share of the training thread's time to spend on rendering frames.
            While the page is not open, no frames are rendered.
        refresh: Seconds between updates of the page.

    Raises:
        OSError: The address or the port cannot be used.

    Example:
        ``train_single_run("cartpole_dddqn", displays=[page])``, with

        >>> page = TrainingPage()
        >>> page.url.startswith("http://127.0.0.1:")
        True
        >>> page.close()
    """

    def __init__(
        self,
        host: str = "127.0.0.1",
        port: int | None = None,
        picture_share: float = DEFAULT_PICTURE_SHARE,
        refresh: float = DEFAULT_REFRESH,
    ) -> None:
        self._watcher = Watcher("training", "training", refresh)
        self._page = LivePage(self._watcher, host, port)
        self._picture_share = picture_share
        self._phases: list[str] = []
        self._progress: dict[str, Any] = {}
        self._evaluations: dict[str, dict[str, Any]] = {}
        self._ratings: list[dict[str, Any]] = []
        self._wins = History()

    @property
    def url(self) -> str:
        """The link to the page. Anyone who has the link can open the page."""
        return self._page.url

    def begin(self, title: str, phases: Sequence[str], envs: VectorEnv) -> None:
        """Show these environments."""
        self._watcher.title = title
        self._phases = list(phases)
        self._page.watch(envs, self._picture_share)

    def progress(self, record: ProgressRecord) -> None:
        """Show the progress of the run."""
        if record.win_rate is not None:
            self._wins.add(record.step, record.win_rate)
            history = [[point.x, point.mean] for point in self._wins.points]
            self._watcher.wins = {"rate": record.win_rate, "history": history}
        self._progress = {
            "phase": record.phase,
            "phase_number": record.phase_number,
            "phases": len(self._phases),
            "phase_share": record.phase_share,
            "share": record.share,
            "updates": record.updates,
            "updates_per_second": record.updates_per_second,
            "losses": _finite(record.losses),
        }
        self._update()

    def evaluation(self, record: EvaluationRecord) -> None:
        """Show the result of an evaluation, in place of an older one against the same opponent."""
        against = f" against {record.opponent}" if record.opponent else ""
        result = (
            f"mean return {record.mean_reward:.4g}"
            if record.win_rate is None
            else f"{record.win_rate:.1%} won"
        )
        self._watcher.event_log.add("evaluation", f"{record.games} games{against}: {result}")
        self._evaluations.pop(record.opponent, None)
        self._evaluations[record.opponent] = _finite(record._asdict())
        self._update()

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Show the ratings of all players of the league."""
        self._ratings = [_finite(record._asdict()) for record in records]
        self._update()

    def note(self, text: str) -> None:
        """Add an entry to the log. A first word that is a kind of event sets the kind."""
        first = text.partition(" ")[0]
        kind = cast(EventKind, first if first in get_args(EventKind) else "note")
        self._watcher.event_log.add(kind, text)
        self._watcher.notify()

    def close(self) -> None:
        """Show that the run has finished, and close the page."""
        self._watcher.end("run finished")
        self._page.close()

    def _update(self) -> None:
        self._watcher.training = {
            **self._progress,
            "evaluations": list(self._evaluations.values()),
            "ratings": self._ratings,
        }
        self._watcher.notify()


def _finite(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data with None for numbers that are not finite, which JSON cannot represent."""
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in data.items()
    }
