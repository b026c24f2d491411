"""The loop of a worker, in a process or a thread: executes the tasks of its lane."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.vector import AutoresetMode

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout
from shoal.pools._environments import call_environments, close_environments
from shoal.pools._messages import (
    Call,
    Close,
    Closed,
    Mailbox,
    Message,
    Outcome,
    Reply,
    Reset,
    RestartSlots,
    Slots,
    Step,
)
from shoal.pools._restarts import loss_events

__all__ = ["INBOX", "Setup", "Worker"]

FIRST_DUTY = 1

INBOX = 0
"""The bank for the results of slots that were sent separately."""


@dataclass(frozen=True)
class Setup:
    """A worker's share of the vector, and the options of the vector."""

    worker: int
    first: int
    last: int
    num_envs: int
    observations: Layout
    actions: Layout
    autoreset_mode: AutoresetMode
    statistics: bool
    deep: bool
    banks: int
    stand_ins: bool
    timed: bool


class Worker:
    """Drives the slots [first, last) of a vector until the pool sends ``Close``.

    Args:
        setup: The slots, and the options of the vector.
        envs: Their environments.
        columns: The vector's columns, shared with the pool.
        board: The board on which the pool posts tasks.
        mailbox: The connection for messages.
    """

    def __init__(
        self,
        setup: Setup,
        envs: list[Env[Any, Any]],
        columns: VectorColumns,
        board: _native.Board,
        mailbox: Mailbox,
    ) -> None:
        self._setup = setup
        self._mailbox = mailbox
        self._envs = envs
        mode = getattr(_native.Autoreset, setup.autoreset_mode.name)
        state = columns.state()
        self._intake = _native.ActionIntake(setup.actions.tree, columns.actions(), state, mode)
        # By slot; None before the share.
        placed: list[Any] = [*[None] * setup.first, *envs]
        stepper = _native.Stepper(
            setup.observations.tree,
            self._intake,
            state,
            placed,
            mode,
            setup.statistics,
            deep=setup.deep,
            remembers=False,
        )
        self._columns = columns
        self._banks = [columns.bank(number) for number in range(setup.banks)]
        self._loop = _native.WorkerLoop(
            board,
            stepper,
            self._intake,
            self._banks,
            columns.begun() if setup.timed else None,
            setup.worker,
            setup.first,
            setup.last,
        )
        self._share = np.arange(setup.first, setup.last)
        self._closed = Event()
        self._stand_in_thread: Thread | None = None
        self._sending = Lock()
        self._has_objects = bool(setup.observations.objects)

    def run(self) -> None:
        """Work until the pool sends ``Close``."""
        if self._setup.stand_ins and len(self._share) > 1:
            self._start_stand_in()
        try:
            self._serve(FIRST_DUTY)
            self._closed.wait()
        finally:
            self._loop.dismiss()
            if self._stand_in_thread is not None:
                self._stand_in_thread.join()

    def _start_stand_in(self) -> None:
        self._stand_in_thread = Thread(target=self._stand_in, name="shoal-stand-in", daemon=True)
        self._stand_in_thread.start()

    def _stand_in(self) -> None:
        """Take over from a thread that is blocked by an environment."""
        if duty := self._loop.stand_by():
            self._start_stand_in()
            self._serve(duty)

    def _serve(self, duty: int) -> None:
        """Execute tasks until ``Close``, or until a stand-in has taken over."""
        while True:
            outcome = self._loop.serve(duty)
            if outcome is False:
                return
            if outcome is None:
                message = self._mailbox.receive()
                if isinstance(message, Close):
                    self._close()
                    return
                self._handle(message)
            else:
                slot, bank, events = outcome
                self._report(Outcome.of(slot, events, self._objects(slot, bank)))

    def _close(self) -> None:
        error = None
        self._loop.wait_until_idle(None)
        try:
            close_environments(self._envs, self._setup.first, self._setup.num_envs)
        except BaseException as raised:
            error = raised
        self._mailbox.send(self._mailbox.pack(Closed(error)))
        self._closed.set()

    def _handle(self, message: Message) -> None:
        if isinstance(message, Step):
            self._intake.put_extras(self._slots(message.slots), message.extras)
            self._loop.add(message.slots, message.bank, None, None, extras=True)
        elif isinstance(message, Reset):
            self._loop.add(message.slots, INBOX, message.seeds, message.options, extras=False)
        elif isinstance(message, RestartSlots):
            self._restart(message)
        elif isinstance(message, Call):
            self._call(message)
        else:
            raise TypeError(f"a worker cannot handle the message {message!r}")

    def _restart(self, message: RestartSlots) -> None:
        if message.in_round:
            # Before the resets, which release the extras of their slots.
            self._intake.put_extras(self._share, message.extras)
        outcomes = []
        finals = message.finals or [None] * len(message.slots)
        for number, seed, final in zip(message.slots, message.seeds, finals, strict=True):
            slot = int(number)
            outcome = self._drive(slot, message.bank, [seed])
            self._columns.results(message.bank)["truncated"][slot] = True
            mode = self._setup.autoreset_mode
            outcome.events[:] = loss_events(slot, outcome.events, mode, final)
            outcomes.append(outcome)
        if message.in_round:
            self._report(self._step_others(outcomes, message))
        else:
            for outcome in outcomes:
                self._report(outcome)

    def _step_others(self, restarted: list[Outcome], message: RestartSlots) -> Outcome:
        """Step the rest of the share, and join the outcomes with those of the restarted slots."""
        others = np.setdiff1d(self._share, message.slots).tolist()
        outcomes = restarted + [self._drive(slot, message.bank, None) for slot in others]
        return Outcome(
            None,
            [event for outcome in outcomes for event in outcome.events],
            [episode for outcome in outcomes for episode in outcome.episodes],
            [error for outcome in outcomes for error in outcome.errors],
            self._objects(None, message.bank),
        )

    def _drive(self, slot: int, bank: int, seeds: list[int | None] | None) -> Outcome:
        return Outcome.of(slot, self._loop.drive(slot, bank, seeds), self._objects(slot, bank))

    def _call(self, message: Call) -> None:
        self._loop.wait_until_idle(message.slots)
        envs = {slot: self._envs[slot - self._setup.first] for slot in message.slots.tolist()}
        results, error = call_environments(
            envs, self._setup.num_envs, message.what, message.args, message.kwargs
        )
        packed = self._mailbox.pack(Reply(message.number, results, error))
        with self._sending:
            self._mailbox.send(packed)

    def _report(self, outcome: Outcome) -> None:
        if outcome.is_empty:
            self._loop.finish(outcome.slot, has_message=False)
            return
        packed = self._mailbox.pack(outcome)
        # Announced first: the message may be too large to be sent before the caller reads it.
        with self._sending:
            self._loop.finish(outcome.slot, has_message=True)
            self._mailbox.send(packed)

    def _objects(self, slot: int | None, bank: int) -> Any:
        if not self._has_objects:
            return None
        return self._banks[bank].objects(self._slots(None if slot is None else np.array([slot])))

    def _slots(self, slots: Slots | None) -> Slots:
        return self._share if slots is None else slots
