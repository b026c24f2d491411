"""The base class of pools with workers, which are processes or threads."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError

from shoal import _native
from shoal._error_description import note_others
from shoal._types import Results
from shoal.errors import ReceiveTimeoutError, VectorFailedError
from shoal.pools._base import Batch, SlotChoice, checked_seeds, slot_numbers
from shoal.pools._environments import Called
from shoal.pools._messages import Message, Outcome, Reset, Slots, Step
from shoal.pools._messenger import TICK
from shoal.pools._raw_infos import raw_infos
from shoal.pools._worker import INBOX
from shoal.pools._worker_calls import PendingCall
from shoal.pools._worker_pool_base import WorkerPoolBase

__all__ = ["ParallelPool"]

_CALLER = -1
"""Stands for the caller where workers have their numbers."""


class ParallelPool(WorkerPoolBase):
    """A pool whose workers drive shares of the slots, and perhaps the caller a last share.

    ``errors`` holds what environments raised in the latest batch, by slot; the first of them was
    raised.
    """

    errors: list[tuple[int, BaseException]] = []  # noqa: RUF012 - replaced, never changed

    # A step of every slot

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order.

        After an interrupt, ``recv`` returns the step, or a reset of all slots discards it.
        """
        with self._use:
            self._begin_round(actions, is_async=False)
            return self._end_round(None)

    def begin_step(self, actions: Any) -> None:
        """Check actions and post steps of all slots; ``end_step`` steps the caller's slots."""
        with self._use:
            self._begin_round(actions, is_async=True)

    def _begin_round(self, actions: Any, *, is_async: bool) -> None:
        self._check_usable("step")
        if self._ledger.in_flight:
            self._check_idle(self._all_slots)
        self._before_tasks()
        self._messenger.of_round.clear()
        self._is_step_async = is_async
        bank = self._round_banks[0]
        if self._needs_messages():
            self._intake.accept(actions, None)
            self._send_round(bank)
        elif not self._group.start_round(actions, bank):
            self._send_round(bank)

    def end_step(self, timeout: float | None = None) -> Results:
        """Finish the step of every slot; after a timeout it can be called again."""
        with self._use:
            self._check_usable("step")
            self._ledger.check_round()
            return self._end_round(timeout)

    def _end_round(self, timeout: float | None) -> Results:
        if self._own_envs and _CALLER not in self._messenger.of_round:
            self._drive_own()
        outcomes = self._await_round(timeout)
        if self._own_envs:
            outcomes.append(self._messenger.of_round[_CALLER])
        batch = self._group.close_round()
        self._round_banks.rotate(-1)
        self._raise([error for outcome in outcomes for error in outcome.errors])
        return (*batch, raw_infos(outcomes, None, self.num_envs))

    def _await_round(self, timeout: float | None) -> list[Outcome]:
        """Wait for the workers' part of a round, and return their outcomes with messages."""
        group = self._group
        while True:
            if group.round_missing and not group.await_round(TICK if timeout is None else 0.0):
                self._await_workers(timeout)
            workers = group.round_messages
            for worker in workers:
                self._messenger.await_share(worker)
            if not group.round_missing:
                break
            # A worker was lost before its message arrived: its replacement steps the share again.
        outcomes = [self._messenger.of_round[worker] for worker in workers]
        for worker, outcome in zip(workers, outcomes, strict=True):
            self._put_objects(worker, outcome, self._round_banks[0])
        return outcomes

    def _await_workers(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            remaining = TICK if deadline is None else min(TICK, deadline - time.monotonic())
            if remaining < 0:
                raise ReceiveTimeoutError(
                    f"the step of {self.num_envs} slots is not done after {timeout} s"
                )
            if self._group.await_round(remaining):
                return
            self._check_workers()

    def _discard_round(self) -> None:
        """Wait for the workers' part of a round, and discard the round."""
        self._await_round(None)
        self._group.close_round()

    def _drive_own(self) -> None:
        """Step the caller's share of a round, exactly once even if it is interrupted."""
        interrupted = VectorFailedError(
            "the step of the caller's own slots was interrupted: reset() the vector, or close() it"
        )
        of_round = self._messenger.of_round
        of_round[_CALLER] = Outcome(None, errors=[(self._shares.num_worker_slots, interrupted)])
        of_round[_CALLER] = Outcome.of(None, self._group.drive_own())

    def _send_round(self, bank: int) -> None:
        """Send the tasks of a round, with the actions that are not in the arena, as messages."""
        packed = {
            worker: [self._transport.pack(self._round_message(worker, bank))]
            for worker in range(len(self._shares.workers))
        }
        with self._messenger.must_complete("the start of a step"):
            self._group.open_round(bank)
            self._messenger.deliver(packed)
            self._note_steps(self._all_slots)

    def _round_message(self, worker: int, bank: int) -> Message:
        share = np.arange(*self._shares.workers[worker])
        return Step(None, bank, self._intake.extras(share))

    # Slots that are sent separately

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        with self._use:
            self._check_usable("reset")
            chosen = slot_numbers(slots, self.num_envs)
            checked = checked_seeds(seeds, len(chosen))
            if self._step_was_interrupted and len(chosen) == self.num_envs:
                self._discard_round()
            self._check_idle(chosen)
            # Everything is packed before anything is sent, so a pickling error changes nothing.
            packed: dict[int, list[Any]] = {}
            own: tuple[Slots, list[int | None]] = chosen[:0], []
            for worker, places in self._by_worker(chosen):
                part, its_seeds = chosen[places], [checked[place] for place in places]
                if worker is None:
                    own = part, its_seeds
                else:
                    packed[worker] = [self._transport.pack(Reset(part, its_seeds, options))]
            self._before_tasks()
            self._messenger.discard(chosen.tolist())
            with self._messenger.must_complete("the start of a reset"):
                self._ledger.mark_in_flight(chosen)
                self._note_seeds(chosen, checked)
                self._group.queue_own_resets(*own, options)
                self._messenger.deliver(packed)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and start to step them."""
        with self._use:
            self._check_usable("send")
            chosen = self._all_slots if slots is None else slot_numbers(slots, self.num_envs)
            self._check_idle(chosen)
            self._before_tasks()
            self._messenger.discard(chosen.tolist())
            if self._needs_messages():
                self._intake.accept(actions, chosen)
                self._send_steps(chosen)
            elif not self._group.send(actions, chosen):
                self._send_steps(chosen)

    def _send_steps(self, slots: Slots) -> None:
        """Send steps whose actions are in the intake, some of them as messages."""
        if not slots.size:
            return
        packed: dict[int, list[Any]] = {}
        posted: list[Slots] = []
        for worker, places in self._by_worker(slots):
            if worker is None:
                posted.append(slots[places])
                continue
            messages, plain = self._step_messages(worker, slots[places])
            packed[worker] = [self._transport.pack(message) for message in messages]
            posted.append(plain)
        with self._messenger.must_complete("the start of a step"):
            self._ledger.mark_in_flight(slots)
            self._messenger.deliver(packed)
            self._group.post_steps(np.concatenate(posted))
            self._note_steps(slots)

    def _step_messages(self, worker: int, slots: Slots) -> tuple[list[Message], Slots]:  # noqa: ARG002
        """Return the messages that step these slots of a worker, and the slots that need none."""
        if self._intake.has_extras(slots):
            return [Step(slots, INBOX, self._intake.extras(slots))], slots[:0]
        return [], slots

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, first come, first served, and return those that are done.

        An exception of an environment is raised, once; slots that have not failed can still be
        received.
        """
        with self._use:
            self._check_usable("recv")
            ledger = self._ledger
            if ledger.is_in_round:
                return Batch(self._all_slots, *self._end_round(timeout))
            requested = None if slots is None else slot_numbers(slots, self.num_envs)
            wanted = ledger.wanted(min_slots, max_slots, requested)
            self._await_slots(wanted, timeout)
            chosen = ledger.select(wanted)
            of_slots = self._messenger.of_slots
            outcomes = []
            if of_slots:
                outcomes = [of_slots[slot] for slot in chosen.tolist() if slot in of_slots]
            errors = [error for outcome in outcomes for error in outcome.errors]
            if errors:
                failed = [slot for slot, _ in errors]
                ledger.clear(np.array(failed))
                self._messenger.discard(failed)
            self._raise(errors)
            batch = self._group.gather(chosen, self._batch_banks[0])
            self._batch_banks.rotate(-1)
            ledger.clear(chosen)
            if not outcomes:
                return Batch(chosen, *batch, None)
            rows = {slot: row for row, slot in enumerate(chosen.tolist())}
            self._messenger.discard(rows)
            return Batch(chosen, *batch, raw_infos(outcomes, rows, len(chosen)))

    def _await_slots(self, wanted: _native.Wanted, timeout: float | None) -> None:
        """Wait until these slots are done, driving the caller's own meanwhile."""
        deadline = None if timeout is None else time.monotonic() + timeout
        # Also if no wait is needed: a worker may be lost while the others keep the caller busy.
        if time.monotonic() > self._next_check:
            self._next_check = time.monotonic() + TICK
            self._check_workers()
        while True:
            self._collect_done()
            missing = self._ledger.missing(wanted)
            if not missing:
                return
            if (own := self._group.next_own()) is not None:
                self._drive_next(own)
                continue
            remaining = TICK if deadline is None else min(TICK, deadline - time.monotonic())
            if remaining < 0:
                raise ReceiveTimeoutError(
                    f"after {timeout} s {missing} more slots must be done, {self._ledger.done} are "
                    "done; all of them can still be received"
                )
            if not self._group.wait(wanted, remaining):
                self._check_workers()

    def _collect_done(self) -> None:
        """Mark slots done that workers have finished, once their messages have arrived as well."""
        group = self._group
        group.collect_done()
        while (announced := group.next_announced()) is not None:
            worker, slot = announced
            if self._messenger.await_slot(worker, slot):
                self._put_objects(worker, self._messenger.of_slots[slot], INBOX)
                group.finish_announced()
            # Otherwise the worker was lost, and its replacement steps the slot again.

    def _drive_next(self, slot: int) -> None:
        of_slots = self._messenger.of_slots
        interrupted = VectorFailedError(f"the step or reset of slot {slot} was interrupted")
        of_slots[slot] = Outcome(slot, errors=[(slot, interrupted)])
        outcome = Outcome.of(slot, self._group.drive_next())
        if outcome.is_empty:
            del of_slots[slot]
        else:
            of_slots[slot] = outcome

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results.

        An exception of an environment is raised, after all slots were discarded.
        """
        if not self.in_flight:
            return
        with self._use:
            self._check_usable("drop")
            ledger = self._ledger
            if ledger.is_in_round:
                if self._is_step_async:
                    self._end_round(None)
                else:
                    self._discard_round()
                return
            self._await_slots(ledger.wanted(None, None, None), None)
            slots = ledger.slots_in_flight().tolist()
            of_slots = self._messenger.of_slots
            outcomes = [of_slots[slot] for slot in slots if slot in of_slots]
            ledger.clear_all()
            self._messenger.discard(slots)
            self._raise([error for outcome in outcomes for error in outcome.errors])

    @property
    def in_flight(self) -> int:
        """How many slots were sent or reset and not yet received."""
        return self._ledger.in_flight

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        with self._use:
            self._check_usable("latest")
            chosen = slot_numbers(slots, self.num_envs)
            observations = self._group.latest(chosen, self._batch_banks[0])
            self._batch_banks.rotate(-1)
            return observations

    # Calls

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method or a function with each environment, or read an attribute."""
        call = self.begin_call(what, args, kwargs, slots)
        try:
            return self.end_call(call)
        finally:
            self.abandon_call(call)

    def begin_call(
        self, what: Called, args: tuple[Any, ...], kwargs: dict[str, Any], slots: SlotChoice = None
    ) -> PendingCall:
        """Send a call to the workers; the caller's own environments are called at once."""
        with self._use:
            self._check_usable("call")
            chosen = slot_numbers(slots, self.num_envs)
            parts = ((worker, chosen[places]) for worker, places in self._by_worker(chosen))
            return self._calls.begin(what, args, kwargs, chosen, parts)

    def end_call(self, call: PendingCall, timeout: float | None = None) -> list[Any]:
        """Return the results of a call; after a timeout it can be called again, or abandoned."""
        with self._use:
            self._check_usable("call")
            return self._calls.end(call, timeout)

    def abandon_call(self, call: PendingCall) -> None:
        """Drop the results of a call when they arrive."""
        self._calls.abandon(call)

    def _put_objects(self, worker: int, outcome: Outcome, bank: int) -> None:
        if outcome.objects is not None:
            first, last = self._shares.workers[worker]
            slots = range(first, last) if outcome.slot is None else [outcome.slot]
            self._banks[bank].put_objects(np.array(slots, np.int64), outcome.objects)

    # Parts

    def _before_tasks(self) -> None:
        """Prepare for tasks that are about to be posted."""
        if not self._ledger.in_flight:
            self._group.correct_count()
        self._messenger.finish_sorting()

    def _needs_messages(self) -> bool:
        """Whether workers need messages even for steps whose actions all lie in the arena."""
        return False

    def _note_steps(self, slots: Slots) -> None:
        """Note that steps of these slots were sent, some of them as messages."""

    def _note_seeds(self, slots: Slots, seeds: Sequence[int | None]) -> None:
        """Note the seeds that slots are reset with."""

    def _raise(self, errors: list[tuple[int, BaseException]]) -> None:
        """Raise the first of these errors if there is any, with the others as notes."""
        self.errors = errors
        note_others(errors)
        if errors:
            raise errors[0][1]

    def _by_worker(self, slots: Slots) -> Iterator[tuple[int | None, npt.NDArray[np.intp]]]:
        """Yield each worker of these slots, None for the caller, with the places of its slots."""
        owners = self._owners[slots]
        for owner in np.unique(owners).tolist():
            worker = owner if owner < len(self._shares.workers) else None
            yield worker, np.flatnonzero(owners == owner)

    @property
    def _step_was_interrupted(self) -> bool:
        """Whether a round is open although its ``step`` has been left."""
        return self._ledger.is_in_round and not self._is_step_async

    def _check_idle(self, slots: Slots) -> None:
        if self._step_was_interrupted:
            raise AlreadyPendingCallError(
                "the last step was interrupted: reset() the vector, or close() it", "recv"
            )
        self._ledger.check_idle(slots)
