"""Schedule of updates: a number of updates per environment step, for any number of slots."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

__all__ = ["Pace"]


class Pace:
    """Counter of environment steps and of the updates that are due.

    Args:
        warmup: Number of initial steps without updates.
        per_step: Updates per step after the warm-up.
        every: Number of steps between groups of updates.

    Example:
        >>> pace = Pace(warmup=10, per_step=0.5, every=1)
        >>> pace.record_steps(16)
        >>> pace.due()
        3
        >>> pace.record_updates(3)
        >>> pace.due()
        0
    """

    def __init__(self, warmup: int, per_step: float, every: int) -> None:
        self._warmup = warmup
        # repr makes 0.1 exactly one tenth.
        self._updates, self._steps = Fraction(repr(per_step)).as_integer_ratio()
        self._every = every
        self.steps = 0
        self.updates = 0
        self._groups = 0

    @property
    def is_warming_up(self) -> bool:
        """Whether updates have not started yet."""
        return self.steps < self._warmup

    def record_steps(self, steps: int) -> None:
        """Count environment steps."""
        self.steps += steps

    def due(self, at_end: bool = False) -> int:
        """Return the number of updates that are due.

        Args:
            at_end: Whether to include updates that would wait for the next group.
        """
        groups = self.steps // self._every
        if groups == self._groups and not at_end:
            return 0
        self._groups = groups
        total = (self.steps - self._warmup) * self._updates // self._steps
        return max(0, total - self.updates)

    def record_updates(self, updates: int) -> None:
        """Count updates."""
        self.updates += updates

    def state(self) -> dict[str, Any]:
        """Return the counters as plain data."""
        return {"steps": self.steps, "updates": self.updates, "_groups": self._groups}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the counters returned by :meth:`state`."""
        vars(self).update(state)
