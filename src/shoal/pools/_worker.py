"""What a worker does, be it a process or a thread: the tasks of its lane of the board."""

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
"""The bank in which slots that were sent one by one leave their results."""


@dataclass(frozen=True)
class Setup:
    """What a worker must know of the vector that it is a part of."""

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
    """Drives the slots [first, last) of a vector until it is told to close.

    Args:
        setup: Which slots, and of what vector.
        envs: Their environments.
        columns: The vector's columns, which the pool sees as well.
        board: Where the pool leaves tasks.
        mailbox: The way of messages.
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
        # By slot: other slots' places stay empty.
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
        self._over = Event()
        self._standing_by: Thread | None = None
        self._sending = Lock()
        self._has_objects = bool(setup.observations.objects)

    def run(self) -> None:
        """Work until told to close."""
        if self._setup.stand_ins and len(self._share) > 1:
            self._call_stand_in()
        try:
            self._serve(FIRST_DUTY)
            self._over.wait()
        finally:
            self._loop.dismiss()
            if self._standing_by is not None:
                self._standing_by.join()

    def _call_stand_in(self) -> None:
        self._standing_by = Thread(target=self._stand_in, name="shoal-stand-in", daemon=True)
        self._standing_by.start()

    def _stand_in(self) -> None:
        """Take over from a thread that an environment keeps waiting."""
        if duty := self._loop.stand_by():
            self._call_stand_in()
            self._serve(duty)

    def _serve(self, duty: int) -> None:
        """Be the thread on duty, until told to close or until a stand-in has taken over."""
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
                slot, bank, told = outcome
                self._tell(Outcome.of(slot, told, self._objects(slot, bank)))

    def _close(self) -> None:
        error = None
        self._loop.wait_until_idle(None)
        try:
            close_environments(self._envs, self._setup.first, self._setup.num_envs)
        except BaseException as raised:
            error = raised
        self._mailbox.send(self._mailbox.pack(Closed(error)))
        self._over.set()

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
            raise TypeError(f"a worker has no use for {message!r}")

    def _restart(self, message: RestartSlots) -> None:
        outcomes = []
        finals = message.finals or [None] * len(message.slots)
        for number, seed, final in zip(message.slots, message.seeds, finals, strict=True):
            slot = int(number)
            outcome = self._driven(slot, message.bank, [seed])
            self._columns.results(message.bank)["truncated"][slot] = True
            mode = self._setup.autoreset_mode
            outcome.events[:] = loss_events(slot, outcome.events, mode, final)
            outcomes.append(outcome)
        if message.in_round:
            self._tell(self._round_with(outcomes, message))
        else:
            for outcome in outcomes:
                self._tell(outcome)

    def _round_with(self, restarted: list[Outcome], message: RestartSlots) -> Outcome:
        """Step the rest of the share, and join what comes of it with the slots that were reset."""
        self._intake.put_extras(self._share, message.extras)
        others = np.setdiff1d(self._share, message.slots).tolist()
        outcomes = restarted + [self._driven(slot, message.bank, None) for slot in others]
        return Outcome(
            None,
            [event for outcome in outcomes for event in outcome.events],
            [episode for outcome in outcomes for episode in outcome.episodes],
            [error for outcome in outcomes for error in outcome.errors],
            self._objects(None, message.bank),
        )

    def _driven(self, slot: int, bank: int, seeds: list[int | None] | None) -> Outcome:
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

    def _tell(self, outcome: Outcome) -> None:
        if outcome.is_empty:
            self._loop.finish(outcome.slot, has_message=False)
            return
        packed = self._mailbox.pack(outcome)
        # First the word on the board: who waits for it then reads what may be too much to be sent
        # without a reader.
        with self._sending:
            self._loop.finish(outcome.slot, has_message=True)
            self._mailbox.send(packed)

    def _objects(self, slot: int | None, bank: int) -> Any:
        if not self._has_objects:
            return None
        return self._banks[bank].objects(self._slots(None if slot is None else np.array([slot])))

    def _slots(self, slots: Slots | None) -> Slots:
        return self._share if slots is None else slots
