"""The deadline of a call."""

from __future__ import annotations

import time

__all__ = ["Deadline"]


class Deadline:
    """The deadline of a call that starts now.

    Args:
        timeout: Seconds; None for no limit.
        is_extensible: Whether the expected duration of a long step extends the deadline.
    """

    def __init__(self, timeout: float | None, *, is_extensible: bool) -> None:
        self.timeout = timeout
        self._is_extensible = is_extensible
        self._start = time.monotonic()

    def remaining(self, expected_duration: float) -> float | None:
        """Seconds until the deadline, at least 0; None for no limit."""
        if self.timeout is None:
            return None
        extension = expected_duration if self._is_extensible else 0.0
        return max(0.0, self._start + self.timeout + extension - time.monotonic())
