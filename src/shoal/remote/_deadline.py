"""How long somebody waits for a server."""

from __future__ import annotations

import time

__all__ = ["Patience"]


class Patience:
    """How long a caller waits.

    Args:
        timeout: Seconds; None for no limit.
        may_grow: Whether a server that has announced a long step is given that time as well.
    """

    def __init__(self, timeout: float | None, *, may_grow: bool) -> None:
        self.seconds = timeout
        self._may_grow = may_grow
        self._begun = time.monotonic()

    def left(self, announced: float) -> float | None:
        """Seconds that are left, none below 0; None for no limit."""
        if self.seconds is None:
            return None
        granted = self.seconds + (announced if self._may_grow else 0.0)
        return max(0.0, self._begun + granted - time.monotonic())
