"""Progress of a run through the phases of its curriculum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.train._config.schema import Phase

__all__ = ["Progress"]


class Progress:
    """Counter of episodes and environment steps, phase by phase.

    Args:
        phases: The phases, in order.

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
        """Number of environment steps in this phase."""
        self.episodes = 0
        """Number of episodes finished in this phase."""
        self.started = 0
        """Number of episodes started in this phase."""

    @property
    def phase(self) -> Phase:
        """The current phase; the last one when the curriculum is over."""
        return self._phases[min(self.number, len(self._phases) - 1)]

    def count(self, steps: int, episodes: int) -> int:
        """Count one step of all slots.

        Args:
            steps: Number of environment steps taken.
            episodes: Number of episodes that ended in this step.

        Returns:
            The number of episodes counted for the phase. Episodes beyond the phase's limit that
            end in the same step are not counted.
        """
        self.steps += steps
        if self.phase.episodes is not None:
            episodes = min(episodes, self.phase.episodes - self.episodes)
        self.episodes += episodes
        return episodes

    def begin_episode(self) -> int:
        """Count the start of an episode and return its index in the phase, from 0."""
        self.started += 1
        return self.started - 1

    @property
    def is_phase_over(self) -> bool:
        """Whether the phase has reached its number of episodes or steps."""
        return self.phase_share >= 1.0

    @property
    def is_over(self) -> bool:
        """Whether all phases are finished."""
        return self.number >= len(self._phases)

    def begin_next(self) -> None:
        """Start the next phase."""
        self.number += 1
        self.steps = self.episodes = self.started = 0

    @property
    def phase_share(self) -> float:
        """Completed fraction of the phase."""
        phase = self.phase
        if phase.episodes is not None:
            return self.episodes / phase.episodes
        assert phase.steps is not None
        return min(1.0, self.steps / phase.steps)

    @property
    def share(self) -> float:
        """Completed fraction of the curriculum.

        Phases are weighted by length if all lengths have the same unit, and equally otherwise.
        """
        if self.is_over:
            return 1.0
        done = sum(self._lengths[: self.number])
        return (done + self.phase_share * self._lengths[self.number]) / sum(self._lengths)

    def state(self) -> dict[str, Any]:
        """Return the counters as plain data."""
        return {name: getattr(self, name) for name in ("number", "steps", "episodes", "started")}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the counters returned by :meth:`state`."""
        vars(self).update(state)


def _lengths(phases: Sequence[Phase]) -> list[float]:
    """Return the relative lengths of the phases; all 1 if units differ."""
    for candidates in ([phase.steps for phase in phases], [phase.episodes for phase in phases]):
        lengths = [float(length) for length in candidates if length is not None]
        if len(lengths) == len(phases):
            return lengths
    return [1.0] * len(phases)
