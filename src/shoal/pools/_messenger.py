"""Messages between a pool and its workers: sent with an announcement, received and sorted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from shoal import _native
from shoal.errors import VectorFailedError
from shoal.pools._messages import Message, Outcome, Reply
from shoal.pools._worker_transport import WorkerTransport

__all__ = ["TICK", "Messenger"]

TICK = 0.01
"""Seconds between two checks of the workers while the caller waits."""


class Messenger:
    """Sends messages to workers, and keeps theirs until the pool needs them.

    Args:
        transport: The workers.
        group: Announces messages on the board; its ledger says which slots are in flight.
        workers: How many workers there are.
        check_workers: Called about every :data:`TICK` seconds while the caller waits for a message.
    """

    def __init__(
        self,
        transport: WorkerTransport,
        group: _native.WorkerGroup,
        workers: int,
        check_workers: Callable[[], None],
    ) -> None:
        self.transport = transport
        self._group = group
        self._ledger = group.ledger
        self._check_workers = check_workers
        self.restarts = [0] * workers
        """How often each worker has been replaced."""
        self.failure: BaseException | None = None
        """Why the pool cannot be used any more."""
        self.of_round: dict[int, Outcome] = {}
        """What workers report of the current round, by worker."""
        self.of_slots: dict[int, Outcome] = {}
        """What workers report of slots that were sent separately, by slot."""
        self._replies: dict[int, dict[int, Reply]] = {}  # by call that is open, by worker
        self._unsorted: set[int] = set()  # workers with a message whose sorting was interrupted

    # Sending

    def send(self, worker: int, message: Message, timeout: float | None = None) -> None:
        """Pack a message and send it."""
        self._deliver(worker, self.transport.pack(message), timeout)

    def deliver(self, packed: Mapping[int, Sequence[Any]]) -> None:
        """Send packed messages, by worker."""
        for worker, messages in packed.items():
            for message in messages:
                self._deliver(worker, message, None)

    def _deliver(self, worker: int, packed: Any, timeout: float | None) -> None:
        with self.must_complete(f"a message to worker {worker}"):
            # Announced first: a message may be too large to be sent before the worker reads it.
            is_announced = self._group.announce_message(worker)
            if is_announced:
                self.transport.send(worker, packed, timeout)
        if not is_announced:
            raise RuntimeError(f"the task queue of worker {worker} is full")

    def must_complete(self, what: str) -> _MustComplete:
        """Return a context that leaves the pool unusable if it is interrupted or fails."""
        return _MustComplete(self, what)

    # Receiving

    def receive(self, worker: int, seconds: float) -> bool:
        """Receive and sort one message of a worker; return whether one has arrived in time."""
        message = self.transport.receive(worker, seconds)
        if message is None:
            self._unsorted.discard(worker)
            return False
        self._unsorted.add(worker)
        if isinstance(message, Outcome) and message.slot is None:
            self.of_round[worker] = message
        elif isinstance(message, Outcome) and message.slot is not None:
            # After an interrupt a message is sorted twice: its slot may have been received since.
            if self._ledger.is_awaited(message.slot):
                self.of_slots[message.slot] = message
        elif isinstance(message, Reply) and message.call in self._replies:
            self._replies[message.call][worker] = message
        self.transport.discard_received(worker)
        self._unsorted.discard(worker)
        return True

    def finish_sorting(self) -> None:
        """Sort messages whose sorting was interrupted, before they could pass for new ones."""
        for worker in tuple(self._unsorted):
            self.receive(worker, 0.0)

    def await_slot(self, worker: int, slot: int) -> bool:
        """Wait for the announced message about a slot; return False if the worker was lost."""
        return self._await(worker, lambda: slot in self.of_slots)

    def await_share(self, worker: int) -> bool:
        """Wait for the announced message about a share; return False if the worker was lost."""
        return self._await(worker, lambda: worker in self.of_round)

    def _await(self, worker: int, has_arrived: Callable[[], bool]) -> bool:
        restarts = self.restarts[worker]
        while not has_arrived():
            if self.restarts[worker] != restarts:
                return False
            if not self.receive(worker, TICK):
                self._check_workers()
        return True

    def open_call(self, call: int) -> None:
        """Keep the replies to a call until :meth:`close_call`."""
        self._replies[call] = {}

    def close_call(self, call: int) -> None:
        """Discard the replies to a call, also those that arrive later."""
        self._replies.pop(call, None)

    def reply(self, worker: int, call: int) -> Reply | None:
        """Return the reply of a worker to an open call if it has arrived."""
        return self._replies.get(call, {}).get(worker)

    @property
    def pending_replies(self) -> int:
        """How many replies to open calls are kept."""
        return sum(map(len, self._replies.values()))

    def discard(self, slots: Iterable[int]) -> None:
        """Discard what was reported of these slots."""
        if self.of_slots:
            for slot in slots:
                self.of_slots.pop(slot, None)


class _MustComplete:
    def __init__(self, messenger: Messenger, what: str) -> None:
        self._messenger = messenger
        self._what = what

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self._messenger.failure is None:
            self._messenger.failure = VectorFailedError(
                f"{self._what} was cut off ({error!r}): close the vector"
            )
