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
    """Shows a run on a page, with its environments, beside what the terminal shows.

    Args:
        host: The address to listen at; by default only this machine can look.
        port: The port; by default 7788, or any where that is taken.
        picture_share: Which part of the time of the training goes into pictures at the most. Where
            nobody looks, none does.
        refresh: Seconds between two states of the page.

    Raises:
        OSError: Nobody can listen at this address.

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
        self._told: dict[str, Any] = {}
        self._evaluations: dict[str, dict[str, Any]] = {}
        self._ratings: list[dict[str, Any]] = []
        self._wins = History()

    @property
    def url(self) -> str:
        """The link to the page. Whoever has it may look, and nobody else."""
        return self._page.url

    def begin(self, title: str, phases: Sequence[str], envs: VectorEnv) -> None:
        """Show these environments from now on."""
        self._watcher.title = title
        self._phases = list(phases)
        self._page.watch(envs, self._picture_share)

    def progress(self, record: ProgressRecord) -> None:
        """Show how far the run is."""
        if record.win_rate is not None:
            self._wins.add(record.step, record.win_rate)
            history = [[point.place, point.mean] for point in self._wins.points]
            self._watcher.wins = {"rate": record.win_rate, "history": history}
        self._told = {
            "phase": record.phase,
            "phase_number": record.phase_number,
            "phases": len(self._phases),
            "phase_share": record.phase_share,
            "share": record.share,
            "updates": record.updates,
            "updates_per_second": record.updates_per_second,
            "losses": _finite(record.losses),
        }
        self._tell()

    def evaluation(self, record: EvaluationRecord) -> None:
        """Show what came of an evaluation, until there is a newer one of the same opponent."""
        against = f" against {record.opponent}" if record.opponent else ""
        came = (
            f"a mean return of {record.mean_reward:.4g}"
            if record.win_rate is None
            else f"{record.win_rate:.1%} won"
        )
        self._watcher.event_log.add("evaluation", f"{record.games} games{against}: {came}")
        self._evaluations.pop(record.opponent, None)
        self._evaluations[record.opponent] = _finite(record._asdict())
        self._tell()

    def ratings(self, records: Sequence[RatingRecord]) -> None:
        """Show the league: all of its players."""
        self._ratings = [_finite(record._asdict()) for record in records]
        self._tell()

    def note(self, text: str) -> None:
        """Write a line into the log."""
        first = text.partition(" ")[0]
        kind = cast(EventKind, first if first in get_args(EventKind) else "note")
        self._watcher.event_log.add(kind, text)
        self._watcher.tell()

    def close(self) -> None:
        """Tell that the run is over, and take the page away."""
        self._watcher.end("the run is over")
        self._page.close()

    def _tell(self) -> None:
        self._watcher.training = {
            **self._told,
            "evaluations": list(self._evaluations.values()),
            "ratings": self._ratings,
        }
        self._watcher.tell()


def _finite(told: Mapping[str, Any]) -> dict[str, Any]:
    """The same with None for numbers that are not finite, which JSON does not know."""
    return {
        name: None if isinstance(value, float) and not isfinite(value) else value
        for name, value in told.items()
    }
