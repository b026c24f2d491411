"""What pools with workers have in common: the contract, kept with a group of them."""

from __future__ import annotations

import atexit
import os
import time
import warnings
from collections import deque
from collections.abc import Sequence
from operator import index, itemgetter
from threading import Lock
from typing import Any, Protocol
from weakref import WeakSet

import numpy as np
import numpy.typing as npt
from gymnasium import Env
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode

from shoal import _native
from shoal._error_description import note_others
from shoal._memory import BoardMemory, VectorColumns
from shoal._spaces import Layout, VectorSpaces
from shoal._types import RawInfos, Results
from shoal.errors import ReceiveTimeoutError, VectorFailedError, WorkerCrashedError
from shoal.pools._base import (
    Batch,
    SlotChoice,
    WorkerState,
    caller_state,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._doorbell_pipes import DoorbellPipes
from shoal.pools._environments import Called, call_environments, close_environments
from shoal.pools._messages import (
    Call,
    Close,
    Message,
    Outcome,
    Reply,
    Reset,
    Slots,
    Step,
)
from shoal.pools._shares import Shares
from shoal.pools._worker import INBOX, Setup

__all__ = ["ParallelPool", "Ticket", "WorkerTransport"]

# Those that are open when the interpreter ends; the workers must not be left to find out.
_open_pools: WeakSet[ParallelPool] = WeakSet()

_CALLER = -1
"""Stands for the caller where workers have their numbers."""

TICK = 0.01
"""Seconds after which a wait looks up, to see whether the workers are well."""

# A view stays valid until the batch after next, and a masked reset fills two banks for one batch.
_VIEWS = 3


@atexit.register
def _close_all() -> None:
    for pool in list(_open_pools):
        pool.close(terminate=True)


class WorkerTransport(Protocol):
    """The workers of a pool, as the pool deals with them."""

    def pack(self, message: Message) -> Any:
        """Make a message ready to send."""

    def send(self, worker: int, packed: Any, timeout: float | None = None) -> None:
        """Send what was packed to a worker, which the board has told of it.

        Raises:
            ReceiveTimeoutError: The worker did not take it in time.
        """

    def receive(self, worker: int, seconds: float) -> Message | None:
        """The oldest message of a worker, or None if none comes within the time.

        It is there until it is put away: who reads it may be interrupted.
        """

    def put_away(self, worker: int) -> None:
        """Forget the message of a worker that was received."""

    def whereabouts(self, worker: int) -> tuple[int | None, int | None]:
        """The process of a worker, or the thread of this process that it is."""

    @property
    def can_be_killed(self) -> bool:
        """Whether a worker can be ended in the middle of its work."""

    def end(self, terminate: bool, timeout: float | None) -> BaseException | None:
        """Wait for workers that were told to close; the first failure of an environment to close.

        Args:
            terminate: End them at once, where that is possible.
            timeout: Seconds until they are ended by force.
        """


class Ticket:
    """A call under way: what was asked of which workers, and what is there of the answer."""

    def __init__(self, number: int, slots: Slots, lives: list[int]) -> None:
        self.number = number
        self.slots = slots
        self.lives = lives
        self.workers: dict[int, Slots] = {}
        self.results: dict[int, Any] = {}
        self.errors: dict[int, BaseException] = {}

    def answer(self, slots: Slots, results: list[Any], error: BaseException | None) -> None:
        """Take note of the results of these slots, and of the error at the next one."""
        self.results.update(zip(slots.tolist(), results, strict=False))
        if error is not None:
            self.errors[int(slots[len(results)])] = error


class ParallelPool:
    """The contract over a group: workers that drive shares of the slots, and perhaps the caller.

    A pool derived from this one starts the workers and watches over them; it calls
    :meth:`_prepare` with what it has learned from them. ``errors`` holds what the environments have
    raised in the latest batch, by slot; one of them was raised.
    """

    errors: list[tuple[int, BaseException]] = []  # noqa: RUF012 - replaced, never changed

    envs: list[Env[Any, Any]] | None = None
    restarts = False
    num_envs: int
    spaces: VectorSpaces
    autoreset_mode: AutoresetMode
    metadata: dict[str, Any]
    render_mode: str | None

    _shares: Shares
    _transport: WorkerTransport
    _pipes: DoorbellPipes
    _own_envs: list[Env[Any, Any]]
    copy: bool
    _statistics: bool

    def _prepare(
        self, *, shared: bool, may_spin: bool, stand_ins: bool, timed: bool = False
    ) -> list[Setup]:
        """Lay out the memory and build the caller's side; what each worker must know of it."""
        observations = Layout.of(self.spaces.single_observation)
        # Gymnasium gives an environment its Dict action in the order of the batched space.
        actions = Layout.of(self.spaces.single_action, ordered_like=self.spaces.action)
        shares, count = self._shares, self.num_envs
        views = 0 if self.copy else _VIEWS
        self._columns = VectorColumns(observations, actions, count, 1 + views, shared=shared)
        self._memory = BoardMemory(len(shares.workers), count, shared=shared)
        self._board = self._memory.board(may_spin, self._pipes.ends())
        state = self._columns.state()
        mode = getattr(_native.Autoreset, self.autoreset_mode.name)
        self._intake = _native.ActionIntake(actions.tree, self._columns.actions(), state, mode)
        own = None
        if self._own_envs:
            placed: list[Any] = [*[None] * shares.num_worker_slots, *self._own_envs]
            own = _native.Stepper(
                observations.tree, self._intake, state, placed, mode, self._statistics, self.copy
            )
        self._banks = [self._columns.bank(number) for number in range(1 + views)]
        self._group = _native.WorkerGroup(
            self._board,
            observations.tree,
            self._intake,
            own,
            self._banks,
            slots=count,
            shares=[last - first for first, last in shares.workers],
            copy=self.copy,
        )
        # The numbers of the banks that rounds fill in rotation, and private ones for other batches.
        self._round_banks = deque(range(1, 1 + views) if views else [INBOX])
        private = VectorColumns(observations, actions, count, views) if views else None
        self._batch_banks: deque[_native.Bank | None] = deque(
            [private.bank(number) for number in range(views)] if private else [None]
        )
        self._owners = shares.owners()
        self._all_slots = np.arange(count)
        self._all_slots.flags.writeable = False
        self._pending: dict[int, None] = {}  # slots in flight one by one, in the order of sending
        self._ready: dict[int, Outcome | None] = {}  # those of them that are done, as they came
        self._own_queue: deque[tuple[int, Any, Any]] = deque()  # the caller's: slot, seeds, options
        self._round_letters: dict[int, Outcome] = {}  # of the round, by worker
        self._is_in_halves = False  # the round: it is not `step` that ends it
        self._sorting: set[int] = set()  # workers of whom a message is being sorted
        self._letters: dict[tuple[int, int], Outcome] = {}  # of single slots
        self._lives = [0] * len(shares.workers)  # how often each worker has been replaced
        self._tickets = 0
        self._replies: dict[tuple[int, int], Reply] = {}
        self._forgotten: set[int] = set()  # tickets whose replies nobody waits for
        self._failure: BaseException | None = None
        self._closed = False
        self._lock = Lock()
        self._process = os.getpid()
        self._next_look = 0.0
        _open_pools.add(self)
        return [
            Setup(
                worker,
                first,
                last,
                count,
                observations,
                actions,
                self.autoreset_mode,
                self._statistics,
                self.copy,
                1 + views,
                stand_ins,
                timed,
            )
            for worker, (first, last) in enumerate(shares.workers)
        ]

    # A step of every slot

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order.

        If it is interrupted, a reset of all slots forgets it, and ``recv`` still returns it.
        """
        with self._alone("step"):
            self._begin_round(actions, in_halves=False)
            return self._end_round(None)

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot and begin to step them; the caller's follow at the end."""
        with self._alone("step"):
            self._begin_round(actions, in_halves=True)

    def _begin_round(self, actions: Any, *, in_halves: bool) -> None:
        group = self._group
        if self._pending or group.round_is_open:
            self._check_idle(self._all_slots)
        self._work_begins()
        self._round_letters.clear()
        self._is_in_halves = in_halves
        bank = self._round_banks[0]
        if self._must_mail_rounds():
            self._intake.accept(actions, None)
            self._mail_round(bank)
        elif not group.start_round(actions, bank):
            self._mail_round(bank)

    def end_step(self, timeout: float | None = None) -> Results:
        """Finish the step of every slot; after a timeout it can be asked for again."""
        with self._alone("step"):
            if not self._group.round_is_open:
                raise NoAsyncCallError("no step of all slots is in flight", "step")
            return self._end_round(timeout)

    def _end_round(self, timeout: float | None) -> Results:
        if self._own_envs and _CALLER not in self._round_letters:
            self._drive_own()
        told = self._told_of_round(timeout)
        if self._own_envs:
            told.append(self._round_letters[_CALLER])
        batch = self._group.close_round()
        self._round_banks.rotate(-1)
        self._raise([error for letter in told for error in letter.errors])
        return (*batch, _batch_infos(told, None, self.num_envs))

    def _told_of_round(self, timeout: float | None) -> list[Outcome]:
        """Wait for the workers' part of a round, and return what they tell beyond the board."""
        group = self._group
        while True:
            if group.round_missing and not group.await_round(TICK if timeout is None else 0.0):
                self._await_round(timeout)
            writers = group.round_mail
            lost = [worker for worker in writers if not self._has_letter(worker)]
            if not lost:
                break
            for worker in lost:
                group.redo(worker)  # lost with its writer; the next one does the work again
        told = [self._round_letters[worker] for worker in writers]
        for worker, letter in zip(writers, told, strict=True):
            self._put_objects(worker, letter, self._round_banks[0])
        return told

    def _forget_round(self) -> None:
        """Wait for the workers' part of a round, and forget the round."""
        self._told_of_round(None)
        self._group.close_round()

    def _drive_own(self) -> None:
        """Step the caller's share of a round, once, whatever happens."""
        cut_off = VectorFailedError(
            "the step of the caller's own slots was interrupted: reset() the vector, or close() it"
        )
        self._round_letters[_CALLER] = Outcome(
            None, errors=[(self._shares.num_worker_slots, cut_off)]
        )
        self._round_letters[_CALLER] = Outcome.of(None, self._group.drive_own())

    def _mail_round(self, bank: int) -> None:
        """Send the tasks of a round, and the actions that are not in the arena, as messages."""
        packed = [
            self._transport.pack(self._round_message(worker, bank))
            for worker in range(len(self._shares.workers))
        ]
        try:
            self._group.open_round(bank)
            for worker, letter in enumerate(packed):
                self._deliver(worker, letter)
        except BaseException as error:
            self._failure = VectorFailedError(
                f"a step was interrupted while it was handed out ({error!r}): close the vector"
            )
            raise

    def _round_message(self, worker: int, bank: int) -> Message:
        share = np.arange(*self._shares.workers[worker])
        return Step(None, bank, self._intake.extras(share))

    # Slots one by one

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        with self._alone("reset"):
            chosen = slot_numbers(slots, self.num_envs)
            given = checked_seeds(seeds, len(chosen))
            if self._step_was_interrupted and len(chosen) == self.num_envs:
                self._forget_round()
            self._check_idle(chosen)
            # All is packed before anything is sent: options that cannot be pickled change nothing.
            packed: dict[int, Any] = {}
            own: list[tuple[int, Any, Any]] = []
            for worker, places in self._by_worker(chosen).items():
                part, its_seeds = chosen[places], [given[place] for place in places]
                if worker < len(self._shares.workers):
                    packed[worker] = self._transport.pack(Reset(part, its_seeds, options))
                else:
                    pairs = zip(part.tolist(), its_seeds, strict=True)
                    own = [(slot, [seed], options) for slot, seed in pairs]
            self._work_begins()
            self._pending.update(dict.fromkeys(chosen.tolist()))
            self._note_seeds(chosen, given)
            self._own_queue.extend(own)
            for worker, letter in packed.items():
                self._deliver(worker, letter)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and begin to step them."""
        with self._alone("send"):
            chosen = self._all_slots if slots is None else slot_numbers(slots, self.num_envs)
            self._check_idle(chosen)
            self._intake.accept(actions, chosen)
            tasks: list[tuple[int, list[Any], Slots]] = []
            own: list[int] = []
            for worker, places in self._by_worker(chosen).items():
                if worker < len(self._shares.workers):
                    messages, plain = self._tasks(worker, chosen[places])
                    tasks.append((worker, [self._transport.pack(each) for each in messages], plain))
                else:
                    own = chosen[places].tolist()
            self._work_begins()
            self._pending.update(dict.fromkeys(chosen.tolist()))
            self._own_queue.extend((slot, None, None) for slot in own)
            for worker, letters, plain in tasks:
                for letter in letters:
                    self._deliver(worker, letter)
                for slot in plain.tolist():
                    self._group.post(worker, slot)
            self._group.ring(-1)

    def _tasks(self, worker: int, slots: Slots) -> tuple[list[Message], Slots]:  # noqa: ARG002
        """What a worker must be told to step these slots: messages, and slots that need none."""
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
        """Wait for slots in flight, first come, first served, and return what is done.

        What the environments have raised is raised, once, and the slots that have not failed stay
        to be received.
        """
        with self._alone("recv"):
            if self._group.round_is_open:
                return Batch(self._all_slots, *self._end_round(timeout))
            if not self._pending:
                raise NoAsyncCallError("recv: no reset or step is in flight", "recv")
            chosen = self._arrived(min_slots, max_slots, slots, timeout)
            outcomes = [self._ready[slot] for slot in chosen]
            told = [outcome for outcome in outcomes if outcome is not None]
            errors = [error for outcome in told for error in outcome.errors]
            for slot, _ in errors:
                del self._ready[slot], self._pending[slot]
            self._raise(errors)
            numbers = np.array(chosen, np.int64)
            batch = self._group.gather(numbers, self._batch_banks[0])
            self._batch_banks.rotate(-1)
            for slot in chosen:
                del self._ready[slot], self._pending[slot]
            rows = {slot: row for row, slot in enumerate(chosen)}
            return Batch(numbers, *batch, _batch_infos(told, rows, len(chosen)))

    def _arrived(
        self,
        min_slots: int | None,
        max_slots: int | None,
        slots: SlotChoice,
        timeout: float | None,
    ) -> list[int]:
        """Wait, and return the slots to be received, in the order of the batch."""
        deadline = None if timeout is None else time.monotonic() + timeout
        if slots is not None:
            asked: list[int] = slot_numbers(slots, self.num_envs).tolist()
            for slot in asked:
                if slot not in self._pending:
                    raise NoAsyncCallError(f"recv: slot {slot} is not in flight", "recv")
            while missing := [slot for slot in asked if slot not in self._ready]:
                self._collect(len(self._ready) + 1, deadline, len(missing))
            return asked
        waiting = len(self._pending)
        wanted = waiting if min_slots is None else index(min_slots)
        if not 1 <= wanted <= waiting:
            raise ValueError(f"min_slots is {min_slots}, but {waiting} slots are in flight")
        self._collect(wanted, deadline, wanted)
        if min_slots is None:
            return list(self._pending)
        most = None if max_slots is None else max(wanted, max_slots)
        return list(self._ready)[:most]

    def _collect(self, wanted: int, deadline: float | None, asked: int) -> None:
        """Wait until so many slots are ready."""
        # Also where there never is a wait: one worker may be lost while others keep us busy.
        if time.monotonic() > self._next_look:
            self._look()
        while True:
            for worker, slot, has_mail in self._group.take():
                outcome = self._letter(worker, slot) if has_mail else None
                if outcome is not None:
                    self._put_objects(worker, outcome, INBOX)
                elif has_mail:  # lost with its writer; the next one does the work again
                    continue
                self._ready[slot] = outcome
            missing = wanted - len(self._ready)
            if missing <= 0:
                return
            if self._own_queue:
                self._drive_next()
                continue
            left = TICK if deadline is None else min(TICK, deadline - time.monotonic())
            if left < 0:
                raise ReceiveTimeoutError(
                    f"{asked} slots were asked for, {len(self._ready)} are done; those in flight "
                    "can still be received"
                )
            if not self._group.wait(missing, left):
                self._look()

    def _drive_next(self) -> None:
        slot, seeds, options = self._own_queue[0]
        cut_off = VectorFailedError(f"the work on slot {slot} was interrupted")
        self._ready[slot] = Outcome(slot, errors=[(slot, cut_off)])
        self._own_queue.popleft()
        outcome = Outcome.of(slot, self._group.drive(slot, seeds, options))
        self._ready[slot] = None if outcome.is_empty else outcome

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        if self._step_was_interrupted:
            with self._alone("drop"):
                self._forget_round()
        while self.in_flight:
            self.recv()

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self.num_envs if self._group.round_is_open else len(self._pending)

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        with self._alone("latest"):
            chosen = slot_numbers(slots, self.num_envs)
            observations = self._group.latest(chosen, self._batch_banks[0])
            self._batch_banks.rotate(-1)
            return observations

    # Calls

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment: call a method, read an attribute, or call a function with it."""
        return self.end_call(self.begin_call(what, args, kwargs, slots))

    def begin_call(
        self, what: Called, args: tuple[Any, ...], kwargs: dict[str, Any], slots: SlotChoice = None
    ) -> Ticket:
        """Begin a call; the caller's own environments are called at once."""
        with self._alone("call"):
            chosen = slot_numbers(slots, self.num_envs)
            self._tickets += 1
            ticket = Ticket(self._tickets, chosen, list(self._lives))
            own: Slots | None = None
            for worker, places in self._by_worker(chosen).items():
                if worker < len(self._shares.workers):
                    ticket.workers[worker] = chosen[places]
                    self._post(worker, Call(ticket.number, chosen[places], what, args, kwargs))
                else:
                    own = chosen[places]
            if own is not None:
                envs = {
                    slot: self._own_envs[slot - self._shares.num_worker_slots]
                    for slot in own.tolist()
                }
                ticket.answer(own, *call_environments(envs, self.num_envs, what, args, kwargs))
            return ticket

    def end_call(self, ticket: Ticket, timeout: float | None = None) -> list[Any]:
        """The results of a call; after a timeout it can be asked for again, or forgotten."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._alone("call"):
            while ticket.workers:
                worker, slots = next(iter(ticket.workers.items()))
                reply = self._replies.pop((worker, ticket.number), None)
                if reply is not None:
                    ticket.answer(slots, reply.results, reply.error)
                    del ticket.workers[worker]
                    continue
                if ticket.lives[worker] != self._lives[worker]:
                    lost = WorkerCrashedError(f"worker {worker} was lost before it could answer")
                    ticket.answer(slots, [], lost)
                    del ticket.workers[worker]
                    continue
                left = TICK if deadline is None else min(TICK, deadline - time.monotonic())
                if left < 0:
                    raise ReceiveTimeoutError(f"worker {worker} has not answered the call in time")
                if not self._sort_mail(worker, left):
                    self._tick()
        if ticket.errors:
            raise ticket.errors[min(ticket.errors)]
        return [ticket.results[slot] for slot in ticket.slots.tolist()]

    def forget_call(self, ticket: Ticket) -> None:
        """Give up a call: its results are dropped when they come."""
        self._forgotten.add(ticket.number)

    # Mail

    def _post(self, worker: int, message: Message, timeout: float | None = None) -> None:
        self._deliver(worker, self._transport.pack(message), timeout)

    def _deliver(self, worker: int, packed: Any, timeout: float | None = None) -> None:
        # First the word on the board: a message may be too large to be sent without a reader.
        self._group.post(worker, -1)
        self._group.ring(worker)
        try:
            self._transport.send(worker, packed, timeout)
        except BaseException as error:
            self._failure = VectorFailedError(
                f"a message to worker {worker} was cut off ({error!r}): close the vector"
            )
            raise

    def _letter(self, worker: int, slot: int) -> Outcome | None:
        """What a worker has announced to say of a slot; None if it is lost with the worker."""
        life = self._lives[worker]
        while self._lives[worker] == life:
            letter = self._letters.pop((worker, slot), None)
            if letter is not None:
                return letter
            if not self._sort_mail(worker, TICK):
                self._tick()
        return None

    def _has_letter(self, worker: int) -> bool:
        """Wait for what a worker has announced to say of its share; False if it is lost."""
        life = self._lives[worker]
        while worker not in self._round_letters:
            if self._lives[worker] != life:
                return False
            if not self._sort_mail(worker, TICK):
                self._tick()
        return True

    def _sort_mail(self, worker: int, seconds: float) -> bool:
        """Receive one message of a worker and put it where it will be looked for."""
        message = self._transport.receive(worker, seconds)
        if message is None:
            self._sorting.discard(worker)
            return False
        self._sorting.add(worker)
        if isinstance(message, Outcome) and message.slot is None:
            self._round_letters[worker] = message
        elif isinstance(message, Outcome) and message.slot is not None:
            # After an interrupt it may be sorted again, when nobody waits for it any more.
            if message.slot in self._pending and message.slot not in self._ready:
                self._letters[worker, message.slot] = message
        elif isinstance(message, Reply) and message.ticket not in self._forgotten:
            self._replies[worker, message.ticket] = message
        self._transport.put_away(worker)
        self._sorting.discard(worker)
        return True

    def _put_objects(self, worker: int, outcome: Outcome, bank: int) -> None:
        if outcome.objects is not None:
            share = range(*self._shares.workers[worker])
            slots = share if outcome.slot is None else [outcome.slot]
            self._banks[bank].put_objects(np.array(slots, np.int64), outcome.objects)

    # The state of things

    def _await_round(self, timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            left = TICK if deadline is None else min(TICK, deadline - time.monotonic())
            if left < 0:
                raise ReceiveTimeoutError(
                    f"the step of {self.num_envs} slots is not done after {timeout} s"
                )
            if self._group.await_round(left):
                return
            self._tick()

    def _look(self) -> None:
        """Look whether the workers are well."""
        self._next_look = time.monotonic() + TICK
        self._tick()

    def _tick(self) -> None:
        """Look after the workers; called whenever a wait has lasted a while."""

    def _raise(self, errors: list[tuple[int, BaseException]]) -> None:
        """Raise the first error of several slots, if there is any, and note the others in it."""
        self.errors = errors
        note_others(errors)
        if errors:
            raise errors[0][1]

    def _work_begins(self) -> None:
        """Take note that tasks are about to be handed out."""
        if not self._pending:
            self._group.settle()
        for worker in tuple(self._sorting):  # before it could be taken for an answer to these
            self._sort_mail(worker, 0.0)

    def _must_mail_rounds(self) -> bool:
        """Whether workers need messages for a round even if all actions lie in the arena."""
        return False

    def _note_seeds(self, slots: Slots, seeds: Sequence[int | None]) -> None:
        """Take note of the seeds that slots are reset with."""

    def _by_worker(self, slots: Slots) -> dict[int, list[int]]:
        """The places in ``slots`` of what each worker owns."""
        owners = self._owners
        places: dict[int, list[int]] = {}
        for place, slot in enumerate(slots.tolist()):
            places.setdefault(owners[slot], []).append(place)
        return places

    @property
    def _step_was_interrupted(self) -> bool:
        """Whether a round is open that nobody will end."""
        return self._group.round_is_open and not self._is_in_halves

    def _check_idle(self, slots: npt.NDArray[np.int64]) -> None:
        if self._step_was_interrupted:
            raise AlreadyPendingCallError(
                "the last step was interrupted: reset() the vector, or close() it", "recv"
            )
        busy = range(self.num_envs) if self._group.round_is_open else self._pending
        for slot in slots.tolist():
            if slot in busy:
                raise AlreadyPendingCallError(
                    f"slot {slot} is in flight already: receive it before sending it again", "recv"
                )

    def _alone(self, doing: str) -> Lock:
        """Refuse to work for a pool that is closed, broken or at work; the lock to work under."""
        if self._lock.locked():
            raise RuntimeError(
                "the vector environment is being stepped already, by another thread or from within "
                "one of its own environments"
            )
        if self._closed:
            raise ClosedEnvironmentError(f"{doing}: the vector environment is closed")
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        return self._lock

    def worker_states(self) -> list[WorkerState]:
        """The workers, and the caller if it has a share."""
        found = []
        for worker, (first, last) in enumerate(self._shares.workers):
            process, thread = self._transport.whereabouts(worker)
            slots, lives = range(first, last), self._lives[worker]
            found.append(WorkerState(f"worker {worker}", slots, "", process, thread, lives))
        if self._shares.own:
            found.append(caller_state(range(self._shares.num_worker_slots, self.num_envs)))
        return found

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and end the workers; a second call does nothing.

        Args:
            terminate: End workers at once, without closing their environments.
            timeout: Seconds until workers that have not ended are ended by force.
        """
        if self._closed:
            return
        self._closed = True
        if os.getpid() != self._process:
            return  # a fork of the process that the workers belong to
        failures: list[BaseException | None] = []
        try:
            close_environments(self._own_envs, self._shares.num_worker_slots, self.num_envs)
        except BaseException as error:
            failures.append(error)
        try:
            if not (terminate and self._transport.can_be_killed):
                for worker in range(len(self._shares.workers)):
                    self._post(worker, Close(), timeout)
        except BaseException as error:  # who cannot be told is ended by force
            terminate = True
            if not isinstance(error, Exception):
                failures.append(error)
        failures.append(self._transport.end(terminate, timeout))
        self._columns.close()
        self._memory.close()
        self._pipes.close()
        for failure in failures:
            if failure is not None:
                raise failure

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "a vector with workers cannot be copied or pickled: its environments are theirs. Make "
            "another one, or use backend='inline'"
        )

    def abandon(self) -> None:
        """End the workers of a pool that nobody has closed and nobody can close any more."""
        if not getattr(self, "_closed", True) and os.getpid() == self._process:
            warnings.warn(
                f"a vector of {self.num_envs} environments was not closed",
                ResourceWarning,
                stacklevel=2,
                source=self,
            )
            self.close(terminate=True)

    def __del__(self) -> None:
        self.abandon()


_slot_of = itemgetter(0)


def _batch_infos(
    outcomes: Sequence[Outcome], rows: dict[int, int] | None, count: int
) -> RawInfos | None:
    """The raw infos of a batch; ``rows`` says the row of each slot, None that they are the same."""
    if not outcomes:
        return None
    # In the order of slots, which threads of a worker may have changed.
    events = [event for outcome in outcomes for event in sorted(outcome.events, key=_slot_of)]
    ended = [episode for outcome in outcomes for episode in outcome.episodes]
    if not events and not ended:
        return None
    if rows is not None:
        events = [(rows[slot], info) for slot, info in events]
        ended = [(rows[slot], *rest) for slot, *rest in ended]  # type: ignore[misc]
    if not ended:
        return events, None
    mask = np.zeros(count, np.bool_)
    returns, lengths = np.zeros(count), np.zeros(count, np.int64)
    seconds = np.zeros(count)
    for row, episode_return, length, duration in ended:
        mask[row] = True
        returns[row], lengths[row], seconds[row] = episode_return, length, duration
    return events, (mask, returns, lengths, seconds)
