"""The pool whose slots are spread over the actors of a Ray cluster."""

from __future__ import annotations

import os
import pickle
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal import _native
from shoal._spaces import Layout, ObservationMode, agree
from shoal._spaces.leaves import Leaves, batch_leaves, batch_of_leaves, join_leaves, take_rows
from shoal._types import Results
from shoal.errors import ReceiveTimeoutError, VectorFailedError, WorkerCrashedError
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    check_open,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._batches import join_batches
from shoal.pools._environments import Called
from shoal.pools._processes.error_packing import PackedError
from shoal.pools._ray.actor_client import OPENING, Host
from shoal.pools._ray.actor_group import ActorGroup
from shoal.pools._ray.actor_recipe import Part
from shoal.pools._ray.cluster import ActorLostError, Cluster, Placement
from shoal.pools._ray.messages import (
    Answer,
    Failed,
    Introduction,
    Task,
    packed,
    sendable,
    unpack_rows,
)
from shoal.pools._restart_policy import OnCrash, RestartPolicy, SlotSeeds
from shoal.pools._restarts import RestartTracker
from shoal.pools._slot_partition import CheckedActions, SlotPartition

__all__ = ["RayPool"]

Loss = tuple[Batch, int]
"""What a slot tells of its loss: a row of a batch."""


class _Posting(NamedTuple):
    """Tasks on their way to their actors; a round where ``slots`` is None."""

    number: int
    slots: list[int] | None
    tasks: list[tuple[int, Task]]
    losses: dict[int, Loss | None]
    """Slots that are not sent, since they have a loss to tell of, with that if it is known yet."""
    forgotten: list[int]
    """Slots that need not tell of a loss any more."""


class RayPool:
    """Slots in the actors of a Ray cluster, a pool in each.

    Args:
        parts: What each actor hosts.
        cluster: Where; the pool leaves it when it is closed.
        cpus: How many CPUs each actor reserves.
        placement: On which nodes they are.
        runtime_env: What they need, as Ray describes it: packages, files, variables.
        observation_mode: How observation spaces of environments must agree.
        copy: Whether batches are the caller's own arrays. If not, rows of one actor that come by
            themselves are read from the object store, where nobody can write.
        on_crash: What the end of an actor, or of its node, means: an error, or that another actor
            takes its place, wherever there is room. Its slots then come back reset, truncated, with
            a reward of 0 and ``crashed`` in their infos; all others go on undisturbed.
        start_timeout: Seconds to wait for room in the cluster.
        restarts_per_minute: How often actors may be replaced before the pool gives up; by default
            ten times, or two of each of them.
    """

    envs = None

    def __init__(
        self,
        parts: Sequence[Part],
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
        per_minute = restarts_per_minute or max(10, 2 * len(parts))
        self._restart_policy = RestartPolicy(on_crash, per_minute)
        self._partition = SlotPartition([part.num_envs for part in parts])
        self.num_envs = self._partition.num_envs
        self.copy = copy
        self.restarts = self._restart_policy.restarts
        self._seeds = SlotSeeds(self.num_envs)
        self._process = os.getpid()
        self._use = _native.ExclusiveUse()
        self._failure: BaseException | None = None
        self._number = 0
        self._posting: _Posting | None = None
        self._parts: dict[int, Batch | BaseException] = {}  # of the round, by actor
        self._shown: dict[int, tuple[Any, int]] = {}  # what slots have shown last: batch and row
        self._actors = ActorGroup(
            cluster,
            parts,
            self._partition,
            cpus=cpus,
            placement=placement,
            runtime_env=runtime_env,
            observation_mode=observation_mode,
            start_timeout=start_timeout,
        )
        self._hosts = self._actors.hosts
        try:
            self._meet(self._actors.introductions(), observation_mode)
            self._closed = False
        except BaseException:
            self._actors.end()
            raise

    def _meet(self, introductions: list[Introduction], mode: ObservationMode) -> None:
        first = introductions[0]
        self.autoreset_mode: AutoresetMode = first.autoreset_mode
        self.metadata: dict[str, Any] = dict(first.metadata)
        self.render_mode = first.render_mode
        pairs = [pair for introduction in introductions for pair in introduction.spaces]
        self.spaces = agree([pair[0] for pair in pairs], [pair[1] for pair in pairs], mode)
        self._layout = Layout.of(self.spaces.single_observation)
        self._actions = CheckedActions(self.spaces, self.num_envs, self.autoreset_mode)
        self._arrivals = Arrivals(self._layout, self.num_envs)
        self._ledger = self._arrivals.ledger

    @property
    def hosts(self) -> list[str]:
        """The actors in words: which slots each has, and where it is."""
        return [str(host) for host in self._hosts]

    @property
    def pools(self) -> list[str]:
        """What kind of pool each actor has."""
        return [host.introduction.hosts for host in self._hosts if host.introduction]

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        self._go_on_posting()
        return self._ledger.in_flight

    # Sending

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        with self._use:
            self._check_usable("reset")
            chosen = self._idle(slots)
            given = checked_seeds(seeds, len(chosen))
            sent = b"" if options is None else sendable(options, "options of a reset")
            self._await_revivals(chosen)
            number = self._next_number()
            tasks = [
                (place, self._reset_task(number, place, own, [given[k] for k in places], sent))
                for place, places, own in self._partition.shares(chosen)
            ]
            for slot, seed in zip(chosen.tolist(), given, strict=True):
                self._seeds.note(slot, seed)
            # A reset needs no news of what was before.
            self._post(_Posting(number, chosen.tolist(), tasks, {}, chosen.tolist()))

    def _reset_task(
        self,
        number: int,
        place: int,
        own: npt.NDArray[np.int64],
        seeds: Sequence[int | None],
        options: bytes = b"",
    ) -> Task:
        is_whole = len(own) == len(self._partition.slots_of(place))
        return Task(number, own, None, seeds, options, is_whole)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and send them to their actors."""
        with self._use:
            self._check_usable("send")
            chosen = self._idle(slots)
            self._send(chosen, self._leaves(actions, chosen))

    def _send(self, slots: npt.NDArray[np.int64], leaves: Leaves) -> None:
        """Send slots one by one; those that have a loss to tell of tell it instead."""
        told = self._concerned(slots)
        goes = np.flatnonzero(~np.isin(slots, told))
        number = self._next_number()
        tasks = [
            (place, Task(number, own, self._actions.part(leaves, goes[places].tolist())))
            for place, places, own in self._partition.shares(slots[goes])
            if places
        ]
        losses: dict[int, Loss | None] = dict.fromkeys(told)
        for host in self._hosts:
            losses.update(host.restarts.to_tell(told))
        self._post(_Posting(number, slots[goes].tolist(), tasks, losses, told))

    def begin_step(self, actions: Any) -> None:
        """Send an action for every slot."""
        with self._use:
            self._check_usable("step")
            self._begin_step(actions)

    def _begin_step(self, actions: Any) -> None:
        every = self._idle(None)
        leaves = self._leaves(actions, None)
        if self._concerned(every):
            self._send(every, leaves)
            return
        number = self._next_number()
        tasks = [
            (place, Task(number, own, self._actions.part(leaves, places), is_whole=True))
            for place, places, own in self._partition.shares(every)
        ]
        self._post(_Posting(number, None, tasks, {}, []))

    def _leaves(self, actions: Any, slots: npt.NDArray[np.int64] | None) -> Leaves:
        leaves = self._actions.leaves(actions, slots)
        if leaves[1]:
            sendable(leaves[1], "actions")
        return leaves

    def _next_number(self) -> int:
        self._number += 1
        return self._number

    def _post(self, posting: _Posting) -> None:
        self._posting = posting
        self._go_on_posting()
        self._actors.submit()
        if any(host.is_held_up for host in self._hosts):
            self._take_ready(0.0)
            self._actors.submit()

    def _go_on_posting(self) -> None:
        """Note what was begun, and hand it to the hosts: now, or after an interrupt again."""
        posting = self._posting
        if posting is None:
            return
        if posting.slots is not None:
            self._arrivals.expect(posting.slots, posting.number)
        elif not self._is_round(posting.number):
            self._parts = {}
            self._ledger.begin_round(posting.number)
        for place, task in posting.tasks:
            self._hosts[place].ask(task)
        for host in self._hosts:
            losses = {slot: loss for slot, loss in posting.losses.items() if slot in host.slots}
            self._arrivals.expect(losses, host.restarts.number)
            known = {slot: loss for slot, loss in losses.items() if loss is not None}
            self._arrivals.put(known, host.restarts.number)
            host.restarts.forget(posting.forgotten)
        self._posting = None

    # Waiting

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        with self._use:
            self._check_usable("step")
            self._begin_step(actions)
            return self._end_step(None)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun; after a timeout it can be asked for again."""
        with self._use:
            self._check_usable("step")
            if self.in_flight < self.num_envs:
                self._ledger.check_round()
            return self._end_step(timeout)

    def _end_step(self, timeout: float | None) -> Results:
        if not self._ledger.is_in_round:
            every = range(self.num_envs)
            self._pump(lambda: self._ledger.done == self.num_envs, timeout)
            try:
                return self._owned(self._arrivals.take(every))[1:]
            finally:
                self._arrivals.clear()
        self._pump(lambda: len(self._parts) == len(self._hosts), timeout)
        parts = [self._parts[place] for place in range(len(self._hosts))]
        errors = [part for part in parts if isinstance(part, BaseException)]
        if errors:
            self._ledger.end_round()
            for error in errors[1:]:
                errors[0].add_note(f"shoal: another actor has failed as well: {error!r}")
            raise errors[0]
        batch = join_batches(self._layout, [part for part in parts if isinstance(part, Batch)])
        results = self._owned(batch)[1:]
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
        """Wait for slots in flight, first come, first served, and return what is done.

        An actor that steps its slots in processes or threads answers those that are done; one that
        steps them itself answers every few milliseconds.
        """
        with self._use:
            self._check_usable("recv")
            self._go_on_posting()
            if self._ledger.is_in_round:
                return Batch(np.arange(self.num_envs), *self._end_step(timeout))
            asked = None if slots is None else slot_numbers(slots, self.num_envs)
            wanted = self._ledger.wanted(min_slots, max_slots, asked)
            self._pump(lambda: self._arrivals.has(wanted), timeout)
            return self._owned(self._arrivals.take_wanted(wanted))

    def _owned(self, batch: Batch) -> Batch:
        """A batch whose arrays are the caller's, where that was asked for."""
        if not self.copy or batch.rewards.flags.writeable:
            return batch
        arrays, objects = batch_leaves(self._layout, batch.observations)
        return batch._replace(
            observations=batch_of_leaves(self._layout, [part.copy() for part in arrays], objects),
            rewards=batch.rewards.copy(),
            terminated=batch.terminated.copy(),
            truncated=batch.truncated.copy(),
        )

    def _pump(self, is_done: Callable[[], bool], timeout: float | None) -> None:
        """Take answers until it is done."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._go_on_posting()
            self._actors.submit()
            if is_done():
                return
            left = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not self._take_ready(left) and left == 0.0:
                raise ReceiveTimeoutError(
                    f"slots were not done within {timeout} seconds; the {self._ledger.in_flight} "
                    "slots in flight can still be received"
                )

    def _take_ready(self, timeout: float | None) -> bool:
        """Take the answers that have come, and wait for the first one; whether there was any."""
        has_come = False
        for host, number, answer in self._actors.answers(timeout):
            has_come = True
            if isinstance(answer, ActorLostError):
                self._lose(host, answer)
            elif number == OPENING:
                self._take_introduction(host, answer)
            else:
                self._take(host, answer)
                host.was_answered(number, answer)
        return has_come

    def _take_introduction(self, host: Host, answer: Introduction | PackedError) -> None:
        try:
            host.introduction = self._actors.unpacked(host, answer)
        except Exception as error:
            self._failure = error
            raise
        host.was_answered(OPENING, None)

    def _take(self, host: Host, answer: Answer) -> None:
        for outcome in answer.outcomes:
            if isinstance(outcome, Failed):
                error = self._actors.error(host, outcome.error)
                self._fail(host, outcome.number, outcome.slots, error)
            else:
                try:
                    batch = unpack_rows(self._layout, outcome, host.slots.start)
                except Exception as error:  # of a class that is not there here
                    error.add_note(f"shoal: it came from {host}")
                    self._fail(host, outcome.number, outcome.slots.tolist(), error)
                else:
                    self._take_batch(host, outcome.number, batch)

    def _take_batch(self, host: Host, number: int, batch: Batch) -> None:
        # Of slots that tell of a loss: they have been reset, so nothing more is due.
        self._actions.note(batch)
        if host.restarts.is_of(number):
            waited_for = self._waited_for(host)
            shown = self._last_shown(batch)
            batch = host.restarts.begun(batch, waited_for, shown, self.autoreset_mode)
        if self.restarts and self.autoreset_mode is AutoresetMode.SAME_STEP:
            self._note_shown(batch, is_whole=len(batch.slots) == len(host.slots))
        if self._is_of_round(host, number):
            self._parts.setdefault(host.place, batch)
        else:
            self._arrivals.add(number, batch)

    def _fail(self, host: Host, number: int, slots: list[int], error: BaseException) -> None:
        """Take note of what came instead of rows for an actor's slots, by its own numbers."""
        concerned = [slot + host.slots.start for slot in slots]
        if host.restarts.is_of(number):
            host.restarts.failed(concerned)
        if self._is_of_round(host, number):
            self._parts[host.place] = error  # also where others of its slots have rows
        else:
            self._arrivals.fail(number, concerned, error)

    def _is_of_round(self, host: Host, number: int) -> bool:
        """Whether an answer under this number is an actor's part of the round under way."""
        is_restart = host.restarts.is_of(number) and number > self._ledger.round_request
        return self._is_round(number) or (self._ledger.is_in_round and is_restart)

    def _is_round(self, number: int) -> bool:
        return self._ledger.is_in_round and number == self._ledger.round_request

    # Losses

    def _lose(self, host: Host, error: ActorLostError) -> None:
        """Deal with the loss of an actor: replace it, or give up."""
        loss = self._actors.loss(host, error)
        if not self._restart_policy.allows_restart(loss):
            self._failure = loss
            raise loss
        host.kill()
        self._go_on_posting()
        number = self._next_number()
        at_work = self._waited_for(host)
        # If an interrupt comes before the last line, the loss is noticed again: all is redone.
        host.restarts = RestartTracker(number, host.slots)
        if not self._ledger.is_in_round:
            self._arrivals.reassign(at_work, number)
        own = np.arange(len(host.slots))
        seeds = [self._seeds.after_crash(slot) for slot in host.slots]
        host.start([self._reset_task(number, host.place, own, seeds)])

    def _waited_for(self, host: Host) -> list[int]:
        """Slots of an actor that are in flight, and for which nothing has come."""
        if self._ledger.is_in_round:
            return [] if host.place in self._parts else list(host.slots)
        return [slot for slot in host.slots if self._ledger.is_awaited(slot)]

    def _concerned(self, slots: npt.NDArray[np.int64]) -> list[int]:
        """Those of these slots that have a loss to tell of."""
        return [slot for host in self._hosts for slot in host.restarts.concerned(slots.tolist())]

    def _await_revivals(self, slots: npt.NDArray[np.int64]) -> None:
        """Wait for new actors of these slots to have begun."""
        places = set(self._partition.owners(slots).tolist())
        revivals = [host for host in self._hosts if host.place in places]
        self._pump(lambda: not any(host.restarts.is_under_way for host in revivals), None)

    def _note_shown(self, batch: Batch, *, is_whole: bool) -> None:
        """Keep what slots show; of some slots a copy, so that no batch is kept for each of them."""
        observations = batch.observations
        if not is_whole:
            arrays, objects = batch_leaves(self._layout, observations)
            copies = [array.copy() for array in arrays]
            observations = batch_of_leaves(self._layout, copies, objects)
        self._shown.update(
            (slot, (observations, row)) for row, slot in enumerate(batch.slots.tolist())
        )

    def _last_shown(self, begun: Batch) -> dict[int, Any]:
        """What slots have shown before they were lost, where infos must tell it."""
        one = batch_space(self.spaces.single_observation, 1)
        shown = {}
        for slot in begun.slots.tolist():
            if slot in self._shown:
                observations, row = self._shown[slot]
                leaves = take_rows(batch_leaves(self._layout, observations), [row])
                shown[slot] = next(iter(iterate(one, batch_of_leaves(self._layout, *leaves))))
        return shown

    # Reaching environments

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        with self._use:
            self._check_usable("latest")
            shares = self._partition.shares(slot_numbers(slots, self.num_envs))
            found = self._ask_each([(share.place, "latest", share.own) for share in shares])
        joined = join_leaves([batch_leaves(self._layout, part) for part in found])
        order = np.argsort([place for share in shares for place in share.places])
        return batch_of_leaves(self._layout, *take_rows(joined, order.tolist()))

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment, wherever it is; results in the order of the slots."""
        with self._use:
            self._check_usable("call")
            chosen = slot_numbers(slots, self.num_envs)
            shares = [share for share in self._partition.shares(chosen) if share.places]
            requests = [packed((what, args, share.own, kwargs), by_value=True) for share in shares]
            found = self._ask_each(
                [
                    (share.place, "call", request)
                    for share, request in zip(shares, requests, strict=True)
                ]
            )
        results: list[Any] = [None] * len(chosen)
        for share, values in zip(shares, found, strict=True):
            for place, value in zip(share.places, values, strict=True):
                results[place] = value
        return results

    def _ask_each(self, questions: Sequence[tuple[int, str, Any]]) -> list[Any]:
        """Ask actors something beside their tasks, and wait for the answers."""
        self._pump(lambda: not any(host.is_opening for host in self._hosts), None)
        found = []
        for (place, *_), answer in zip(questions, self._actors.ask_each(questions), strict=True):
            host = self._hosts[place]
            if isinstance(answer, ActorLostError):
                who = str(host)
                self._lose(host, answer)
                raise WorkerCrashedError(f"{who} was lost before it could answer") from answer
            found.append(pickle.loads(self._actors.unpacked(host, answer)))
        return found

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        with self._use:
            self._check_usable("drop")
            if self.in_flight:
                self._pump(self._nothing_is_missing, None)
            self._arrivals.clear()

    def _nothing_is_missing(self) -> bool:
        if self._ledger.is_in_round:
            return len(self._parts) == len(self._hosts)
        return not self._arrivals.missing()

    # The end

    def worker_states(self) -> list[WorkerState]:
        """The actors, and on which node each is."""
        return [host.worker_state() for host in self._hosts]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and end the actors; a second call does nothing.

        Args:
            terminate: End the actors at once, without closing their environments.
            timeout: Seconds until actors that have not ended are ended by force.
        """
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:
            return  # a fork of the process that the actors belong to
        failures: list[BaseException] = []
        try:
            if not terminate and self._actors.is_there:
                failures = self._actors.close(timeout)
        finally:
            self._actors.end()
        if failures:
            raise failures[0]

    def abandon(self) -> None:
        """End the actors of a pool that nobody has closed and nobody can close any more."""
        if getattr(self, "_closed", True) or os.getpid() != self._process:
            return
        warnings.warn(
            f"a vector of {self.num_envs} environments was not closed",
            ResourceWarning,
            stacklevel=2,
            source=self,
        )
        self._closed = True
        # Garbage is collected at any time, in any thread: no time for Ray itself to be ended.
        self._actors.end(leaves_at_once=False)

    def __del__(self) -> None:
        self.abandon()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "a vector with actors cannot be copied or pickled: its environments are theirs. Make "
            "another one"
        )

    # The state of things

    def _idle(self, slots: SlotChoice) -> npt.NDArray[np.int64]:
        chosen = slot_numbers(slots, self.num_envs)
        self._go_on_posting()
        self._ledger.check_idle(chosen)
        return chosen

    def _check_usable(self, doing: str) -> None:
        check_open(self._closed, doing)
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if not self._actors.is_there:
            raise VectorFailedError(f"{doing}: Ray was shut down, and with it the environments")
