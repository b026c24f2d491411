"""Where a run is in its curriculum: which phase, and how far."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.train._config.schema import Phase

__all__ = ["Progress"]


class Progress:
    """Counts episodes and steps of phases, one after the other.

    Args:
        phases: In their order.

    Example:
        >>> progress = Progress([Phase(name="first", episodes=2), Phase(name="second", steps=8)])
        >>> progress.count(steps=4, episodes=2)
        2
        >>> progress.is_phase_over
        True
        >>> progress.begin_next()
        >>> progress.phase.name, progress.share
        ('second', 0.5)
    """

    def __init__(self, phases: Sequence[Phase]) -> None:
        self._phases = list(phases)
        self._lengths = _lengths(self._phases)
        self.number = 0
        self.steps = 0
        """Environment steps of this phase."""
        self.episodes = 0
        """Episodes of this phase that have ended."""
        self.begun = 0
        """Episodes of this phase that have begun."""

    @property
    def phase(self) -> Phase:
        """The one that is going on; the last one when all are over."""
        return self._phases[min(self.number, len(self._phases) - 1)]

    def count(self, steps: int, episodes: int) -> int:
        """Take a step of all slots into account.

        Returns:
            How many of the episodes belong to the phase: once it has all of its episodes, those
            that end in the same step are not counted.
        """
        self.steps += steps
        if self.phase.episodes is not None:
            episodes = min(episodes, self.phase.episodes - self.episodes)
        self.episodes += episodes
        return episodes

    def begin_episode(self) -> int:
        """An episode begins; its number in the phase, from 0."""
        self.begun += 1
        return self.begun - 1

    @property
    def is_phase_over(self) -> bool:
        """Whether the phase has all of its episodes, or steps."""
        return self.phase_share >= 1.0

    @property
    def is_over(self) -> bool:
        """Whether all phases are over."""
        return self.number >= len(self._phases)

    def begin_next(self) -> None:
        """Go on to the next phase."""
        self.number += 1
        self.steps = self.episodes = self.begun = 0

    @property
    def phase_share(self) -> float:
        """Which part of the phase is done."""
        phase = self.phase
        if phase.episodes is not None:
            return self.episodes / phase.episodes
        assert phase.steps is not None
        return min(1.0, self.steps / phase.steps)

    @property
    def share(self) -> float:
        """Which part of the whole is done; phases count by their lengths where those compare."""
        if self.is_over:
            return 1.0
        done = sum(self._lengths[: self.number])
        return (done + self.phase_share * self._lengths[self.number]) / sum(self._lengths)

    def state(self) -> dict[str, Any]:
        """Where it is."""
        return {name: getattr(self, name) for name in ("number", "steps", "episodes", "begun")}

    def restore(self, state: dict[str, Any]) -> None:
        """Be where :meth:`state` was taken."""
        vars(self).update(state)


def _lengths(phases: Sequence[Phase]) -> list[float]:
    """How long each phase is next to the others; all alike where that cannot be said."""
    for lengths in ([phase.steps for phase in phases], [phase.episodes for phase in phases]):
        known = [float(length) for length in lengths if length is not None]
        if len(known) == len(phases):
            return known
    return [1.0] * len(phases)
