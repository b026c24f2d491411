"""The results of a round, a step of every slot, by actor."""

from __future__ import annotations

from shoal import _native
from shoal._spaces import Layout
from shoal.pools._base import Batch
from shoal.pools._batches import join_batches

__all__ = ["RoundResults"]


class RoundResults:
    """Keeps what the actors return for the open round until the caller receives it.

    Args:
        ledger: The slot ledger of the pool, in which rounds are opened and ended.
        num_actors: How many actors the pool has.
        layout: The layout of observations.
    """

    def __init__(self, ledger: _native.SlotLedger, num_actors: int, layout: Layout) -> None:
        self._ledger = ledger
        self._num_actors = num_actors
        self._layout = layout
        self._results: dict[int, Batch | BaseException] = {}

    def begin(self, number: int) -> None:
        """Open a round with this request number; repeating the call does nothing."""
        if not self.is_current(number):
            self._results = {}
            self._ledger.begin_round(number)

    def is_current(self, number: int) -> bool:
        """Whether this is the request number of the open round."""
        return self._ledger.is_in_round and number == self._ledger.round_request

    @property
    def is_complete(self) -> bool:
        """Whether all actors have returned results."""
        return len(self._results) == self._num_actors

    def has(self, index: int) -> bool:
        """Whether this actor has returned results."""
        return index in self._results

    def add(self, index: int, batch: Batch) -> None:
        """Keep the results of an actor, unless there are some already."""
        self._results.setdefault(index, batch)

    def fail(self, index: int, error: BaseException) -> None:
        """Keep an error of an actor, in place of any results."""
        self._results[index] = error

    def join(self) -> Batch:
        """Return the results of all actors, in slot order.

        The round stays open, so that the caller can end it once it has copied the results; if an
        actor has failed, the round ends and its error is raised.
        """
        results = [self._results[index] for index in range(self._num_actors)]
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            self._ledger.end_round()
            for error in errors[1:]:
                errors[0].add_note(f"shoal: another actor failed as well: {error!r}")
            raise errors[0]
        return join_batches(self._layout, [each for each in results if isinstance(each, Batch)])
