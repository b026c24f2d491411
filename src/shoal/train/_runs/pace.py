"""How many updates are due: so many for each environment step, whatever the number of slots."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

__all__ = ["Pace"]


class Pace:
    """Counts environment steps, and the updates that belong to them.

    Args:
        warmup: Steps for which there are none.
        per_step: Updates for each step after those.
        every: Steps between rounds of updates.

    Example:
        >>> pace = Pace(warmup=10, per_step=0.5, every=1)
        >>> pace.count(16)
        >>> pace.due()
        3
        >>> pace.made(3)
        >>> pace.due()
        0
    """

    def __init__(self, warmup: int, per_step: float, every: int) -> None:
        self._warmup = warmup
        self._updates, self._steps = Fraction(repr(per_step)).as_integer_ratio()  # 0.1 is a tenth
        self._every = every
        self.steps = 0
        self.updates = 0
        self._rounds = 0

    @property
    def is_warming_up(self) -> bool:
        """Whether there are no updates yet."""
        return self.steps < self._warmup

    def count(self, steps: int) -> None:
        """So many steps were taken."""
        self.steps += steps

    def due(self, at_end: bool = False) -> int:
        """How many updates are due.

        Args:
            at_end: Whether those count, too, that would wait for the next round.
        """
        rounds = self.steps // self._every
        if rounds == self._rounds and not at_end:
            return 0
        self._rounds = rounds
        belonging = (self.steps - self._warmup) * self._updates // self._steps
        return max(0, belonging - self.updates)

    def made(self, updates: int) -> None:
        """So many updates were made."""
        self.updates += updates

    def state(self) -> dict[str, Any]:
        """What was counted."""
        return {"steps": self.steps, "updates": self.updates, "_rounds": self._rounds}

    def restore(self, state: dict[str, Any]) -> None:
        """Be what :meth:`state` was of."""
        vars(self).update(state)
