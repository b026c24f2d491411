"""Posting requests to actors so that an interrupt between any two lines loses nothing.

A posting describes everything that follows from one request. It is assigned to one attribute before
any of it is done, and removed once all of it is done. After an interrupt the whole posting is done
again, which has the same result as doing it once.
"""

from __future__ import annotations

from typing import NamedTuple

from shoal.pools._arrivals import Arrivals
from shoal.pools._base import Batch
from shoal.pools._ray.actor_group import ActorGroup
from shoal.pools._ray.messages import Task
from shoal.pools._ray.round_results import RoundResults

__all__ = ["LossRow", "Poster", "Posting"]

LossRow = tuple[Batch, int]
"""The results that report the loss of a slot: a batch, and the row of the slot."""


class Posting(NamedTuple):
    """A request, and the slots that report a loss instead of being sent."""

    number: int
    """The request number, which is also the number of its tasks."""
    slots: list[int] | None
    """The slots that are sent; None for a round."""
    tasks: list[tuple[int, Task]]
    """The tasks, each with the index of its actor."""
    losses: dict[int, LossRow | None]
    """The slots that report a loss; None until the slot was reset in a new actor."""
    reported: list[int]
    """The slots whose losses need not be reported any more."""


class Poster:
    """Posts requests to the actors of a pool.

    Args:
        group: The actors.
        arrivals: The slots in flight, and their results.
        round_results: The results of the open round.
    """

    def __init__(self, group: ActorGroup, arrivals: Arrivals, round_results: RoundResults) -> None:
        self._group = group
        self._arrivals = arrivals
        self._round_results = round_results
        self._newest_number = 0
        self._posting: Posting | None = None

    def next_number(self) -> int:
        """Return a new request number."""
        self._newest_number += 1
        return self._newest_number

    def post(self, posting: Posting) -> None:
        """Mark the slots of a posting in flight, and queue its tasks for their actors."""
        self._posting = posting
        self.finish()

    def finish(self) -> None:
        """Complete a posting that was interrupted, if there is one."""
        posting = self._posting
        if posting is None:
            return
        if posting.slots is None:
            self._round_results.begin(posting.number)
        else:
            self._arrivals.expect(posting.slots, posting.number)
        for index, task in posting.tasks:
            self._group.clients[index].queue(task)
        for client in self._group.clients:
            losses = {slot: loss for slot, loss in posting.losses.items() if slot in client.slots}
            self._arrivals.expect(losses, client.restarts.number)
            known = {slot: loss for slot, loss in losses.items() if loss is not None}
            self._arrivals.put(known, client.restarts.number)
            client.restarts.mark_reported(posting.reported)
        self._posting = None
