"""What a worker does, be it a process or a thread: the tasks of its lane of the board."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from gymnasium import Env
from gymnasium.vector import AutoresetMode

from shoal import _native
from shoal.memory import VectorColumns
from shoal.pools.environments import call_environments, close_environments
from shoal.pools.messages import (
    Call,
    Close,
    Closed,
    Mailbox,
    Message,
    Outcome,
    Reply,
    Reset,
    Revive,
    Slots,
    Step,
    outcome_of,
)
from shoal.spaces import Layout

__all__ = ["Setup", "Worker"]

CRASHED = "crashed"


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
        self._hand = _native.Hand(
            board, stepper, self._intake, self._banks, setup.worker, setup.first, setup.last
        )
        self._share = np.arange(setup.first, setup.last)
        self._has_objects = bool(setup.observations.objects)

    def run(self) -> None:
        """Work until told to close."""
        while True:
            outcome = self._hand.serve()
            if outcome is None:
                message = self._mailbox.receive()
                if isinstance(message, Close):
                    break
                self._handle(message)
            else:
                slot, bank, infos, error = outcome
                self._tell(outcome_of(slot, infos, error, self._objects(slot, bank)))
        error = None
        try:
            close_environments(self._envs, self._setup.first, self._setup.num_envs)
        except BaseException as raised:
            error = raised
        self._mailbox.send(self._mailbox.pack(Closed(error)))

    def _handle(self, message: Message) -> None:
        if isinstance(message, Step):
            self._step(message)
        elif isinstance(message, Reset):
            for slot, seed in zip(message.slots, message.seeds, strict=True):
                self._tell(self._reset(int(slot), 0, seed, message.options))
        elif isinstance(message, Revive):
            self._revive(message)
        elif isinstance(message, Call):
            self._call(message)
        else:
            raise TypeError(f"a worker has no use for {message!r}")

    def _step(self, message: Step) -> None:
        self._intake.put_extras(self._slots(message.slots), message.extras)
        try:
            if message.slots is None:
                self._tell(self._drive(None, None, message.bank))
            else:
                for slot in message.slots:
                    self._tell(self._drive(int(slot), np.array([slot]), message.bank))
        finally:
            self._intake.drop_extras(self._slots(message.slots))

    def _reset(self, slot: int, bank: int, seed: int | None, options: Any) -> Outcome:
        return self._drive(slot, np.array([slot]), bank, [seed], options)

    def _drive(
        self,
        slot: int | None,
        slots: Slots | None,
        bank: int,
        seeds: Any = None,
        options: Any = None,
    ) -> Outcome:
        try:
            infos = self._hand.drive(slots, bank, seeds, options)
        except BaseException as error:  # it is the caller's, whatever it is
            return outcome_of(slot, None, error)
        return outcome_of(slot, infos, None, self._objects(slot, bank))

    def _revive(self, message: Revive) -> None:
        outcomes = []
        for slot, seed in zip(message.slots, message.seeds, strict=True):
            outcome = self._reset(int(slot), message.bank, seed, None)
            self._columns.results(message.bank)["truncated"][slot] = True
            outcome.events.append((int(slot), {CRASHED: True}))
            outcomes.append(outcome)
        if not message.whole:
            for outcome in outcomes:
                self._tell(outcome)
            return
        errors = (outcome.error for outcome in outcomes if outcome.error is not None)
        events = [event for outcome in outcomes for event in outcome.events]
        objects = self._objects(None, message.bank)
        self._tell(Outcome(None, events, objects=objects, error=next(errors, None)))

    def _tell(self, outcome: Outcome) -> None:
        empty = outcome.error is None and not outcome.events and not outcome.episodes
        if empty and outcome.objects is None:
            self._hand.finish(outcome.slot, has_mail=False)
            return
        packed = self._mailbox.pack(outcome)
        # First the word on the board: who waits for it then reads what may be too much to be sent
        # without a reader.
        self._hand.finish(outcome.slot, has_mail=True)
        self._mailbox.send(packed)

    def _call(self, message: Call) -> None:
        envs = {slot: self._envs[slot - self._setup.first] for slot in message.slots.tolist()}
        results, error = call_environments(
            envs, self._setup.num_envs, message.name, message.args, message.kwargs
        )
        self._mailbox.send(self._mailbox.pack(Reply(message.ticket, results, error)))

    def _objects(self, slot: int | None, bank: int) -> Any:
        if not self._has_objects:
            return None
        return self._banks[bank].objects(self._slots(None if slot is None else np.array([slot])))

    def _slots(self, slots: Slots | None) -> Slots:
        return self._share if slots is None else slots
