"""The pool whose slots are distributed over the actors of a Ray cluster."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from shoal import _native
from shoal._spaces import Layout, ObservationMode, agree
from shoal._spaces.leaves import Leaves, batch_leaves, batch_of_leaves, join_leaves, take_rows
from shoal._types import Results
from shoal.errors import VectorFailedError, WorkerCrashedError
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    check_open,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._environments import Called
from shoal.pools._ray.actor_group import ActorGroup
from shoal.pools._ray.actor_recipe import ActorRecipe
from shoal.pools._ray.actor_restarts import ActorRestarts
from shoal.pools._ray.cluster import ActorLostError, Cluster, Placement
from shoal.pools._ray.messages import PoolInfo, Task, pack, pack_for_actor
from shoal.pools._ray.posting import Poster, Posting
from shoal.pools._ray.receiver import Receiver
from shoal.pools._ray.round_results import RoundResults
from shoal.pools._restart_policy import OnCrash, RestartPolicy
from shoal.pools._slot_partition import ActionChecker, SlotPartition

__all__ = ["RayPool"]


class RayPool:
    """A pool with its slots in the actors of a Ray cluster, each of which has a pool.

    Args:
        recipes: How each actor builds its pool.
        cluster: The cluster; the pool leaves it when it is closed.
        cpus: How many CPUs each actor reserves.
        placement: How actors are distributed over nodes.
        runtime_env: The runtime environment of the actors, as Ray describes it: packages, files,
            environment variables.
        observation_mode: How the observation spaces of environments must agree.
        copy: Whether batches are arrays of the caller's. Otherwise a batch that comes from a single
            actor is a read-only view into Ray's object store.
        on_crash: What happens if an actor, or its node, is lost: ``"raise"`` an error, or
            ``"restart"`` to start another actor on any node with free CPUs. Its slots then come
            back reset, truncated, with a reward of 0 and ``crashed`` in their infos. Slots of other
            actors are not affected.
        start_timeout: Seconds to wait for free CPUs in the cluster.
        restarts_per_minute: How many restarts are allowed within a minute before the pool fails; by
            default 10, or two per actor if that is more.
    """

    envs = None

    def __init__(
        self,
        recipes: Sequence[ActorRecipe],
        cluster: Cluster,
        *,
        cpus: float = 1,
        placement: Placement = "spread",
        runtime_env: Mapping[str, Any] | None = None,
        observation_mode: ObservationMode = "same",
        copy: bool = True,
        on_crash: OnCrash = "raise",
        start_timeout: float = 60.0,
        restarts_per_minute: int | None = None,
    ) -> None:
        per_minute = restarts_per_minute or max(10, 2 * len(recipes))
        policy = RestartPolicy(on_crash, per_minute)
        self._partition = SlotPartition([recipe.num_envs for recipe in recipes])
        self.num_envs = self._partition.num_envs
        self.copy = copy
        self.restarts = policy.restarts
        self._process = os.getpid()
        self._use = _native.ExclusiveUse()
        self._group = ActorGroup(
            cluster,
            recipes,
            self._partition,
            cpus=cpus,
            placement=placement,
            runtime_env=runtime_env,
            observation_mode=observation_mode,
            start_timeout=start_timeout,
        )
        self._clients = self._group.clients
        try:
            self._open(self._group.wait_open(), observation_mode, policy)
            self._closed = False
        except BaseException:
            self._group.end()
            raise

    def _open(
        self, pool_infos: list[PoolInfo], mode: ObservationMode, policy: RestartPolicy
    ) -> None:
        first = pool_infos[0]
        self.autoreset_mode: AutoresetMode = first.autoreset_mode
        self.metadata: dict[str, Any] = dict(first.metadata)
        self.render_mode = first.render_mode
        pairs = [pair for pool_info in pool_infos for pair in pool_info.spaces]
        self.spaces = agree([pair[0] for pair in pairs], [pair[1] for pair in pairs], mode)
        self._layout = Layout.of(self.spaces.single_observation)
        self._actions = ActionChecker(self.spaces, self.num_envs, self.autoreset_mode)
        self._arrivals = Arrivals(self._layout, self.num_envs)
        self._ledger = self._arrivals.ledger
        self._round_results = RoundResults(self._ledger, len(self._clients), self._layout)
        self._poster = Poster(self._group, self._arrivals, self._round_results)
        self._restarts = ActorRestarts(
            policy,
            self.num_envs,
            self.spaces,
            self.autoreset_mode,
            group=self._group,
            poster=self._poster,
            arrivals=self._arrivals,
            round_results=self._round_results,
        )
        self._receiver = Receiver(
            self._layout,
            self._actions,
            group=self._group,
            poster=self._poster,
            arrivals=self._arrivals,
            round_results=self._round_results,
            restarts=self._restarts,
        )

    @property
    def actors(self) -> list[str]:
        """A description of each actor: its slots, its process and its node."""
        return [str(client) for client in self._clients]

    @property
    def pools(self) -> list[str]:
        """The class name of each actor's pool."""
        return [client.pool_info.pool_type for client in self._clients if client.pool_info]

    @property
    def in_flight(self) -> int:
        """How many slots were sent or reset, and not received yet."""
        self._poster.finish()
        return self._ledger.in_flight

    # Sending

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has a seed or None for each of these slots."""
        with self._use:
            self._check_usable("reset")
            chosen = self._idle(slots)
            all_seeds = checked_seeds(seeds, len(chosen))
            packed = b"" if options is None else pack_for_actor(options, "options of a reset")
            self._wait_restarted(chosen)
            number = self._poster.next_number()
            tasks = []
            for index, rows, local_slots in self._partition.shares(chosen):
                is_whole = len(local_slots) == len(self._partition.slots_of(index))
                task_seeds = [all_seeds[row] for row in rows]
                task = Task(number, local_slots, None, task_seeds, packed, is_whole)
                tasks.append((index, task))
            self._restarts.note_seeds(chosen.tolist(), all_seeds)
            # Slots that are reset need not report an earlier loss.
            self._post(Posting(number, chosen.tolist(), tasks, {}, chosen.tolist()))

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and send them to their actors."""
        with self._use:
            self._check_usable("send")
            chosen = self._idle(slots)
            self._send(chosen, self._checked_leaves(actions, chosen))

    def _send(self, slots: npt.NDArray[np.int64], leaves: Leaves) -> None:
        """Send slots; those with an unreported loss report it instead of being stepped."""
        losses = self._restarts.losses(slots.tolist())
        reporting = list(losses)
        sent = np.flatnonzero(~np.isin(slots, reporting))
        number = self._poster.next_number()
        tasks = [
            (index, Task(number, local_slots, self._actions.part(leaves, sent[rows].tolist())))
            for index, rows, local_slots in self._partition.shares(slots[sent])
            if rows
        ]
        self._post(Posting(number, slots[sent].tolist(), tasks, losses, reporting))

    def begin_step(self, actions: Any) -> None:
        """Send an action for every slot."""
        with self._use:
            self._check_usable("step")
            self._begin_step(actions)

    def _begin_step(self, actions: Any) -> None:
        slots = self._idle(None)
        leaves = self._checked_leaves(actions, None)
        if self._restarts.losses(slots.tolist()):
            self._send(slots, leaves)
            return
        number = self._poster.next_number()
        tasks = [
            (index, Task(number, local_slots, self._actions.part(leaves, rows), is_whole=True))
            for index, rows, local_slots in self._partition.shares(slots)
        ]
        self._post(Posting(number, None, tasks, {}, []))

    def _checked_leaves(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Leaves:
        leaves = self._actions.check(actions, slots)
        if leaves[1]:
            pack_for_actor(leaves[1], "actions")
        return leaves

    def _post(self, posting: Posting) -> None:
        self._poster.post(posting)
        self._group.submit()
        if any(client.has_queued_tasks for client in self._clients):
            self._receiver.take_ready(0.0)
            self._group.submit()

    # Receiving

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        with self._use:
            self._check_usable("step")
            self._begin_step(actions)
            return self._end_step(None)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started; can be called again after a timeout."""
        with self._use:
            self._check_usable("step")
            if self.in_flight < self.num_envs:
                self._ledger.check_round()
            return self._end_step(timeout)

    def _end_step(self, timeout: float | None) -> Results:
        if not self._ledger.is_in_round:  # for instance because some slots report a loss
            self._receiver.wait(lambda: self._ledger.done == self.num_envs, timeout)
            try:
                return self._owned(self._arrivals.take(range(self.num_envs)))[1:]
            finally:
                self._arrivals.clear()
        self._receiver.wait(lambda: self._round_results.is_complete, timeout)
        results = self._owned(self._round_results.join())[1:]
        self._ledger.end_round()
        return results

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, and return those that are done, first come, first served.

        An actor whose pool has worker processes or threads returns slots as they become done; one
        that steps its slots in the main thread returns several every few milliseconds.
        """
        with self._use:
            self._check_usable("recv")
            self._poster.finish()
            if self._ledger.is_in_round:
                return Batch(np.arange(self.num_envs), *self._end_step(timeout))
            requested = None if slots is None else slot_numbers(slots, self.num_envs)
            wanted = self._ledger.wanted(min_slots, max_slots, requested)
            self._receiver.wait(lambda: self._arrivals.has(wanted), timeout)
            return self._owned(self._arrivals.take_wanted(wanted))

    def _owned(self, batch: Batch) -> Batch:
        """Return a batch with writable arrays if ``copy`` is set."""
        if not self.copy or batch.rewards.flags.writeable:
            return batch
        arrays, objects = batch_leaves(self._layout, batch.observations)
        copies = [array.copy() for array in arrays]
        return batch._replace(
            observations=batch_of_leaves(self._layout, copies, objects),
            rewards=batch.rewards.copy(),
            terminated=batch.terminated.copy(),
            truncated=batch.truncated.copy(),
        )

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        with self._use:
            self._check_usable("drop")
            if self.in_flight:
                self._receiver.wait(self._all_done, None)
            self._arrivals.clear()

    def _all_done(self) -> bool:
        if self._ledger.is_in_round:
            return self._round_results.is_complete
        return not self._arrivals.missing()

    # Access to environments

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        with self._use:
            self._check_usable("latest")
            shares = self._partition.shares(slot_numbers(slots, self.num_envs))
            parts = self._call_each([(share.part, "latest", share.local_slots) for share in shares])
        joined = join_leaves([batch_leaves(self._layout, part) for part in parts])
        order = np.argsort([row for share in shares for row in share.rows])
        return batch_of_leaves(self._layout, *take_rows(joined, order.tolist()))

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method or a function with each environment, or read an attribute.

        Returns the results in the order of the slots.
        """
        with self._use:
            self._check_usable("call")
            chosen = slot_numbers(slots, self.num_envs)
            shares = [share for share in self._partition.shares(chosen) if share.rows]
            requests = [
                pack((what, args, share.local_slots, kwargs), by_value=True) for share in shares
            ]
            answers = self._call_each(
                [
                    (share.part, "call", request)
                    for share, request in zip(shares, requests, strict=True)
                ]
            )
        results: list[Any] = [None] * len(chosen)
        for share, values in zip(shares, answers, strict=True):
            for row, value in zip(share.rows, values, strict=True):
                results[row] = value
        return results

    def _call_each(self, calls: Sequence[tuple[int, str, Any]]) -> list[Any]:
        """Call methods of actors; see :meth:`.ActorGroup.call_each`."""
        self._receiver.wait(lambda: not any(client.is_opening for client in self._clients), None)
        results = []
        for (index, *_), response in zip(calls, self._group.call_each(calls), strict=True):
            client = self._clients[index]
            if isinstance(response, ActorLostError):
                description = str(client)
                self._restarts.replace_or_fail(client, response)
                raise WorkerCrashedError(
                    f"{description} was lost before it could answer"
                ) from response
            results.append(pickle.loads(self._group.checked(client, response)))
        return results

    # Workers

    def worker_states(self) -> list[WorkerState]:
        """Return the slots and the node of each actor."""
        return [client.worker_state() for client in self._clients]

    def _wait_restarted(self, slots: npt.NDArray[np.int64]) -> None:
        """Wait until the slots of actors that were replaced are reset."""
        owners = set(self._partition.owners(slots).tolist())
        clients = [client for client in self._clients if client.index in owners]
        self._receiver.wait(
            lambda: not any(client.restarts.is_under_way for client in clients), None
        )

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and end the actors; a second call does nothing.

        Args:
            terminate: Kill the actors without closing their environments.
            timeout: Seconds to wait for the environments to close before the actors are killed.
        """
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:
            return  # a fork of the process that the actors belong to
        failures: list[BaseException] = []
        try:
            if not terminate and self._group.is_running:
                failures = self._group.close(timeout)
        finally:
            self._group.end()
        if failures:
            raise failures[0]

    def abandon(self) -> None:
        """End the actors of a pool that was garbage-collected without being closed."""
        if getattr(self, "_closed", True) or os.getpid() != self._process:
            return
        warnings.warn(
            f"a vector of {self.num_envs} environments was not closed",
            ResourceWarning,
            stacklevel=2,
            source=self,
        )
        self._closed = True
        # The garbage collector may run in any thread at any time, where Ray must not be shut down.
        self._group.end(disconnect=False)

    def __del__(self) -> None:
        self.abandon()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "a vector with actors cannot be copied or pickled, since they own its environments. "
            "Make another one"
        )

    # Checks

    def _idle(self, slots: SlotChoice) -> npt.NDArray[np.int64]:
        chosen = slot_numbers(slots, self.num_envs)
        self._poster.finish()
        self._ledger.check_idle(chosen)
        return chosen

    def _check_usable(self, method: str) -> None:
        check_open(self._closed, method)
        if self._group.failure is not None:
            raise self._group.failure.with_traceback(None)
        if not self._group.is_running:
            raise VectorFailedError(f"{method}: Ray was shut down, which ended the environments")
