"""Calls of environments that workers and the caller drive."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gymnasium import Env

from shoal.errors import ReceiveTimeoutError, WorkerCrashedError
from shoal.pools._environments import Called, call_environments
from shoal.pools._messages import Call, Slots
from shoal.pools._messenger import TICK, Messenger

__all__ = ["PendingCall", "WorkerCalls"]


class PendingCall:
    """A call that was sent, which workers still have to answer it, and the results so far.

    Args:
        number: The number of the call.
        slots: The slots whose environments are called, in the order of the results.
        restarts: How often each worker had been replaced when the call was sent.
    """

    def __init__(self, number: int, slots: Slots, restarts: list[int]) -> None:
        self.number = number
        self.slots = slots
        self.restarts = restarts
        self.workers: dict[int, Slots] = {}
        """The slots of each worker that has not answered."""
        self._results: dict[int, Any] = {}
        self._errors: dict[int, BaseException] = {}

    def answer(self, slots: Slots, results: list[Any], error: BaseException | None) -> None:
        """Note the results of these slots, and the error of the slot after them if there is one."""
        self._results.update(zip(slots.tolist(), results, strict=False))
        if error is not None:
            # An interrupt may arrive after the last result.
            self._errors[int(slots[min(len(results), len(slots) - 1)])] = error

    def results(self) -> list[Any]:
        """Return the results in the order of the slots, or raise the error of the first slot."""
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[slot] for slot in self.slots.tolist()]


class WorkerCalls:
    """Sends calls to workers and waits for their replies.

    Args:
        messenger: The way to the workers.
        own_envs: The caller's environments, by slot.
        num_envs: How many slots the vector has.
        check_workers: Called about every tick while the caller waits for a reply.
    """

    def __init__(
        self,
        messenger: Messenger,
        own_envs: Mapping[int, Env[Any, Any]],
        num_envs: int,
        check_workers: Callable[[], None],
    ) -> None:
        self._messenger = messenger
        self._own_envs = own_envs
        self._num_envs = num_envs
        self._check_workers = check_workers
        self._count = 0

    def begin(
        self,
        what: Called,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        slots: Slots,
        by_worker: Iterator[tuple[int | None, Slots]],
    ) -> PendingCall:
        """Send a call to the workers of these slots; the caller's environments are called at once.

        ``by_worker`` has each worker's part of the slots, and the caller's part under None.
        """
        self._count += 1
        call = PendingCall(self._count, slots, list(self._messenger.restarts))
        own: Slots | None = None
        try:
            self._messenger.open_call(call.number)
            for worker, part in by_worker:
                if worker is None:
                    own = part
                    continue
                call.workers[worker] = part
                self._messenger.send(worker, Call(call.number, part, what, args, kwargs))
            if own is not None:
                envs = {slot: self._own_envs[slot] for slot in own.tolist()}
                call.answer(own, *call_environments(envs, self._num_envs, what, args, kwargs))
        except BaseException:
            self.abandon(call)
            raise
        return call

    def end(self, call: PendingCall, timeout: float | None) -> list[Any]:
        """Wait for the replies, and return the results.

        After a timeout or an interrupt it can be called again, or the call be abandoned.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while call.workers:
            worker, slots = next(iter(call.workers.items()))
            reply = self._messenger.reply(worker, call.number)
            if reply is not None:
                call.answer(slots, reply.results, reply.error)
                del call.workers[worker]
                continue
            if call.restarts[worker] != self._messenger.restarts[worker]:
                lost = WorkerCrashedError(f"worker {worker} was lost before it could answer")
                call.answer(slots, [], lost)
                del call.workers[worker]
                continue
            remaining = TICK if deadline is None else min(TICK, deadline - time.monotonic())
            if remaining < 0:
                raise ReceiveTimeoutError(f"worker {worker} has not answered the call in time")
            if not self._messenger.receive(worker, remaining):
                self._check_workers()
        self._messenger.close_call(call.number)
        return call.results()

    def abandon(self, call: PendingCall) -> None:
        """Discard the replies to a call."""
        self._messenger.close_call(call.number)
