"""Waiting for the responses of actors, and sorting their results."""

from __future__ import annotations

import time
from collections.abc import Callable

from shoal._spaces import Layout
from shoal.errors import ReceiveTimeoutError
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import Batch
from shoal.pools._processes.error_packing import PackedError
from shoal.pools._ray.actor_client import OPEN_REQUEST, ActorClient
from shoal.pools._ray.actor_group import ActorGroup
from shoal.pools._ray.actor_restarts import ActorRestarts
from shoal.pools._ray.cluster import ActorLostError
from shoal.pools._ray.messages import FailedSlots, PoolInfo, Response, unpack_rows
from shoal.pools._ray.posting import Poster
from shoal.pools._ray.round_results import RoundResults
from shoal.pools._slot_partition import ActionChecker

__all__ = ["Receiver"]


class Receiver:
    """Receives the responses of the actors of a pool.

    Args:
        layout: The layout of observations.
        actions: Is informed of slots that have finished their episodes.
        group: The actors.
        poster: Posts requests to the actors.
        arrivals: Keeps results of slots.
        round_results: Keeps results of the open round.
        restarts: Replaces lost actors.
    """

    def __init__(
        self,
        layout: Layout,
        actions: ActionChecker,
        *,
        group: ActorGroup,
        poster: Poster,
        arrivals: Arrivals,
        round_results: RoundResults,
        restarts: ActorRestarts,
    ) -> None:
        self._layout = layout
        self._actions = actions
        self._group = group
        self._poster = poster
        self._arrivals = arrivals
        self._round_results = round_results
        self._restarts = restarts

    def wait(self, is_done: Callable[[], bool], timeout: float | None) -> None:
        """Take responses until ``is_done`` returns True.

        Raises:
            ReceiveTimeoutError: The timeout has passed.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._poster.finish()
            self._group.submit()
            if is_done():
                return
            remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self.take_ready(remaining) and remaining == 0.0:
                raise ReceiveTimeoutError(
                    f"slots were not done within {timeout} seconds; the "
                    f"{self._arrivals.ledger.in_flight} slots in flight can still be received"
                )

    def take_ready(self, timeout: float | None) -> bool:
        """Wait for a response, and take all that are ready; return whether there were any."""
        has_taken = False
        for client, number, response in self._group.responses(timeout):
            has_taken = True
            if isinstance(response, ActorLostError):
                self._restarts.replace_or_fail(client, response)
            elif number == OPEN_REQUEST:
                self._take_pool_info(client, response)
            else:
                self._take_response(client, response)
                client.finish_call(number, response)
        return has_taken

    def _take_pool_info(self, client: ActorClient, response: PoolInfo | PackedError) -> None:
        try:
            client.pool_info = self._group.checked(client, response)
        except Exception as error:
            self._group.failure = error
            raise
        client.finish_call(OPEN_REQUEST, None)

    def _take_response(self, client: ActorClient, response: Response) -> None:
        for outcome in response.outcomes:
            if isinstance(outcome, FailedSlots):
                error = self._group.unpack_error(client, outcome.error)
                self._fail(client, outcome.number, outcome.slots, error)
            else:
                try:
                    batch = unpack_rows(self._layout, outcome, client.slots.start)
                except Exception as error:  # for instance a class that cannot be imported here
                    error.add_note(f"shoal: it came from {client}")
                    self._fail(client, outcome.number, outcome.slots.tolist(), error)
                else:
                    self._take_batch(client, outcome.number, batch)

    def _take_batch(self, client: ActorClient, number: int, batch: Batch) -> None:
        # Before losses are reported as truncations: those slots were reset already.
        self._actions.note_finished(batch)
        batch = self._restarts.report_losses(client, number, batch)
        if self._restarts.is_of_round(client, number):
            self._round_results.add(client.index, batch)
        else:
            self._arrivals.add(number, batch)

    def _fail(
        self, client: ActorClient, number: int, local_slots: list[int], error: BaseException
    ) -> None:
        """Keep an error in place of the results of these slots, numbered within the actor."""
        slots = [slot + client.slots.start for slot in local_slots]
        if client.restarts.is_of(number):
            client.restarts.discard(slots)
        if self._restarts.is_of_round(client, number):
            self._round_results.fail(client.index, error)  # discards results of its other slots
        else:
            self._arrivals.fail(number, slots, error)
