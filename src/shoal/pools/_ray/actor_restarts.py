"""Replacing lost actors, and reporting the loss of their slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal._spaces import Layout, VectorSpaces
from shoal._spaces.leaves import batch_leaves, batch_of_leaves, take_rows
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import Batch
from shoal.pools._ray.actor_client import ActorClient
from shoal.pools._ray.actor_group import ActorGroup
from shoal.pools._ray.cluster import ActorLostError
from shoal.pools._ray.messages import Task
from shoal.pools._ray.posting import LossRow, Poster
from shoal.pools._ray.round_results import RoundResults
from shoal.pools._restart_policy import RestartPolicy, SlotSeeds
from shoal.pools._restarts import RestartTracker

__all__ = ["ActorRestarts"]


class ActorRestarts:
    """Replaces lost actors, if the restart policy allows it.

    The slots of a replacement are reset. Each of them then reports its loss once: with the results
    that the caller waits for, or the next time that it is sent.

    Args:
        policy: Whether lost actors are replaced.
        num_envs: How many slots the pool has.
        spaces: The spaces of the pool.
        autoreset_mode: The autoreset mode of the pool.
        group: The actors.
        poster: Posts requests to the actors.
        arrivals: The slots in flight, and their results.
        round_results: The results of the open round.
    """

    def __init__(
        self,
        policy: RestartPolicy,
        num_envs: int,
        spaces: VectorSpaces,
        autoreset_mode: AutoresetMode,
        *,
        group: ActorGroup,
        poster: Poster,
        arrivals: Arrivals,
        round_results: RoundResults,
    ) -> None:
        self._policy = policy
        self._single_observation = spaces.single_observation
        self._layout = Layout.of(spaces.single_observation)
        self._autoreset_mode = autoreset_mode
        self._group = group
        self._poster = poster
        self._arrivals = arrivals
        self._ledger = arrivals.ledger
        self._round_results = round_results
        self._seeds = SlotSeeds(num_envs)
        self._newest: dict[int, tuple[Any, int]] = {}  # the newest observations and row of slots

    def note_seeds(self, slots: Sequence[int], seeds: Sequence[int | None]) -> None:
        """Note the seeds of a reset, from which the seeds after a crash follow."""
        for slot, seed in zip(slots, seeds, strict=True):
            self._seeds.note(slot, seed)

    def replace_or_fail(self, client: ActorClient, error: ActorLostError) -> None:
        """Replace a lost actor.

        Raises:
            WorkerCrashedError: The restart policy does not allow it; the pool has failed.
        """
        loss = self._group.loss_error(client, error)
        if not self._policy.allows_restart(loss):
            self._group.failure = loss
            raise loss
        client.kill()
        self._poster.finish()
        number = self._poster.next_number()
        awaited = self._awaited_slots(client)
        # After an interrupt before the last line, the loss is noticed again and all is repeated.
        client.restarts = RestartTracker(number, client.slots)
        if not self._ledger.is_in_round:
            self._arrivals.reassign(awaited, number)
        local_slots = np.arange(len(client.slots))
        seeds = [self._seeds.after_crash(slot) for slot in client.slots]
        client.start([Task(number, local_slots, seeds=seeds, is_whole=True)])

    def losses(self, slots: Sequence[int]) -> dict[int, LossRow | None]:
        """Return those of these slots that have an unreported loss, with its report.

        The report is None for slots that have not been reset yet.
        """
        losses: dict[int, LossRow | None] = {}
        for client in self._group.clients:
            unreported = client.restarts.concerned(slots)
            losses.update(dict.fromkeys(unreported))
            losses.update(client.restarts.unreported(unreported))
        return losses

    def report_losses(self, client: ActorClient, number: int, batch: Batch) -> Batch:
        """Return results of an actor, with the losses that they have to report."""
        if client.restarts.is_of(number):
            awaited = self._awaited_slots(client)
            newest = self._newest_observations(batch)
            batch = client.restarts.begun(batch, awaited, newest, self._autoreset_mode)
        if self._policy.restarts and self._autoreset_mode is AutoresetMode.SAME_STEP:
            self._keep_observations(batch, is_whole=len(batch.slots) == len(client.slots))
        return batch

    def is_of_round(self, client: ActorClient, number: int) -> bool:
        """Whether results with this request number belong to the open round."""
        is_restart = client.restarts.is_of(number) and number > self._ledger.round_request
        return self._round_results.is_current(number) or (self._ledger.is_in_round and is_restart)

    def _awaited_slots(self, client: ActorClient) -> list[int]:
        """Return the slots of an actor that are in flight and not done."""
        if self._ledger.is_in_round:
            return [] if self._round_results.has(client.index) else list(client.slots)
        return [slot for slot in client.slots if self._ledger.is_awaited(slot)]

    def _keep_observations(self, batch: Batch, *, is_whole: bool) -> None:
        """Keep the newest observations of slots.

        Results of some slots are copied: otherwise every slot could keep a whole batch alive.
        """
        observations = batch.observations
        if not is_whole:
            arrays, objects = batch_leaves(self._layout, observations)
            copies = [array.copy() for array in arrays]
            observations = batch_of_leaves(self._layout, copies, objects)
        self._newest.update(
            (slot, (observations, row)) for row, slot in enumerate(batch.slots.tolist())
        )

    def _newest_observations(self, reset: Batch) -> dict[int, Any]:
        """Return the newest observation that was kept for each of the slots of a batch."""
        batch_of_one = batch_space(self._single_observation, 1)
        newest = {}
        for slot in reset.slots.tolist():
            if slot in self._newest:
                observations, row = self._newest[slot]
                leaves = take_rows(batch_leaves(self._layout, observations), [row])
                batch = batch_of_leaves(self._layout, *leaves)
                newest[slot] = next(iter(iterate(batch_of_one, batch)))
        return newest
