"""The client's requests that have not been answered in full."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces import Layout
from shoal._types import Results
from shoal.pools._arrivals import Arrivals
from shoal.pools._restarts import RestartTracker

__all__ = ["PendingRequests"]


class PendingRequests:
    """The state of the requests of one session.

    A step of all slots (a round) is tracked as a whole, slots that are sent separately by
    :class:`Arrivals`, and requests that are not about slots in flight by their number.

    Args:
        layout: The layout of one slot's observation.
        num_envs: Number of slots.
    """

    def __init__(self, layout: Layout, num_envs: int) -> None:
        self._num_envs = num_envs
        self.arrivals = Arrivals(layout, num_envs)
        self.ledger = self.arrivals.ledger
        self.restarts = RestartTracker()
        self.round_results: Results | None = None
        self.replies: dict[int, Any] = {}  # results or exceptions, by request
        self.sent_at: dict[int, float] = {}  # the requests that are not answered in full
        self.expected_durations: dict[int, float] = {}
        self.latest_requests: set[int] = set()

    def __len__(self) -> int:
        return len(self.sent_at)

    @property
    def in_flight(self) -> int:
        """Number of slots that are in flight."""
        return self.ledger.in_flight

    @property
    def expected_duration(self) -> float:
        """The longest expected duration in seconds that the server has announced."""
        return max(self.expected_durations.values(), default=0.0)

    def add(
        self,
        number: int,
        slots: npt.NDArray[np.int64] | None = None,
        *,
        is_round: bool = False,
        is_latest: bool = False,
    ) -> None:
        """Add a request that is about to be sent."""
        self.sent_at[number] = time.perf_counter()
        if slots is not None:
            self.arrivals.expect(slots.tolist(), number)
        if is_round:
            self.round_results = None
            self.ledger.begin_round(number)
        if is_latest:
            self.latest_requests.add(number)

    def withdraw(self, number: int) -> None:
        """Remove a request that was not sent after all."""
        self.settle(number)
        self.latest_requests.discard(number)
        self.arrivals.withdraw(number)
        if self.is_round(number):
            self.ledger.end_round()

    def is_round(self, number: int) -> bool:
        """Whether this is the request of the round in flight."""
        return self.ledger.is_in_round and self.ledger.round_request == number

    def settle(self, number: int) -> None:
        """Mark a request as answered in full."""
        self.sent_at.pop(number, None)
        self.expected_durations.pop(number, None)

    def settle_if_complete(self, number: int) -> None:
        """Mark a request as answered if no slot of it is outstanding."""
        if self.arrivals.is_complete(number):
            self.settle(number)

    def has_round(self) -> bool:
        """Whether all results of the round have arrived."""
        if self.ledger.is_in_round:
            return self.round_results is not None
        return self.ledger.done == self._num_envs

    def take_round(self) -> Results:
        """Return the results of the round, which has arrived; raise the error of a failed slot."""
        if not self.ledger.is_in_round:
            try:
                return self.arrivals.take(range(self._num_envs))[1:]
            finally:
                self.arrivals.clear()
        results = self.round_results
        assert results is not None
        self.ledger.end_round()
        self.round_results = None
        return results
