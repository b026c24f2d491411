"""The thread pool: workers are threads of this process.

It is faster than stepping inline for environments that release the GIL, and on a Python without the
GIL. Nothing is pickled, and the environments are objects of this process.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Iterable
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from gymnasium import Env
from gymnasium.vector import AutoresetMode

from shoal._spaces import ObservationMode, agree
from shoal.pools._doorbell_pipes import Doorbell, DoorbellPipes
from shoal.pools._environments import (
    EnvFactory,
    checked_factories,
    close_environments,
    open_environments,
)
from shoal.pools._messages import Closed, Message
from shoal.pools._parallel import ParallelPool
from shoal.pools._shares import available_cores, share_out
from shoal.pools._worker import Worker

__all__ = ["ThreadPool"]

_GRACE = 1.0
"""Seconds that threads have to end when the pool is terminated; processes would be killed."""


class _ThreadMailbox:
    """Both ends of the connection between the pool and one worker."""

    def __init__(self) -> None:
        self.to_worker: SimpleQueue[Message] = SimpleQueue()
        self.to_pool: SimpleQueue[Message] = SimpleQueue()
        self.received: deque[Message] = deque()  # by the pool, and not discarded

    def receive(self) -> Message:
        return self.to_worker.get()

    def pack(self, message: Message) -> Message:
        return message

    def send(self, packed: Message) -> None:
        self.to_pool.put(packed)


class _ThreadTransport:
    """The threads of a pool."""

    can_be_killed = False

    def __init__(self) -> None:
        self._mailboxes: list[_ThreadMailbox] = []
        self._threads: list[Thread] = []

    def start(self, worker: Worker, mailbox: _ThreadMailbox) -> None:
        thread = Thread(target=worker.run, name=f"shoal-{len(self._threads)}", daemon=True)
        self._mailboxes.append(mailbox)
        self._threads.append(thread)
        thread.start()

    def pack(self, message: Message) -> Message:
        return message

    def send(self, worker: int, packed: Message, timeout: float | None = None) -> None:  # noqa: ARG002
        self._mailboxes[worker].to_worker.put(packed)

    def receive(self, worker: int, seconds: float) -> Message | None:
        mailbox = self._mailboxes[worker]
        if not mailbox.received:
            try:
                # One C call, so that an interrupt cannot lose a message that has left the queue.
                mailbox.received.extend(map(mailbox.to_pool.get, (True,), (seconds,)))
            except Empty:
                return None
        return mailbox.received[0]

    def discard_received(self, worker: int) -> None:
        self._mailboxes[worker].received.popleft()

    def location(self, worker: int) -> tuple[int | None, int | None]:
        return None, self._threads[worker].native_id

    def end(self, terminate: bool, timeout: float | None) -> BaseException | None:
        failure: BaseException | None = None
        for thread, mailbox in zip(self._threads, self._mailboxes, strict=True):
            thread.join(_GRACE if terminate else timeout)
            if thread.is_alive():
                warnings.warn(
                    f"{thread.name} is still working, and threads cannot be killed: it closes its "
                    "environments when its step returns",
                    ResourceWarning,
                    stacklevel=4,
                )
            while not mailbox.to_pool.empty():
                message = mailbox.to_pool.get()
                if isinstance(message, Closed):
                    failure = failure or message.error
        return failure


class ThreadPool(ParallelPool):
    """Steps Python environments in threads of this process.

    Args:
        factories: One function for each slot, which makes its environment.
        workers: The number of threads; by default as many as keep all cores busy.
        caller_works: Whether the caller steps the last slots itself.
        observation_mode: As in ``gymnasium.vector.AsyncVectorEnv``.
        autoreset_mode: What happens at the end of an episode.
        copy: Whether batches are new arrays, or views that are valid until the batch after next.
        statistics: Whether to report return, length and time of each episode that ends.
        stand_ins: Whether another thread of a worker may step its other slots while one environment
            blocks, for instance on a network.
        doorbell: How to wake workers: ``"futex"``, ``"pipe"``, or ``"auto"`` for a futex if the
            system has them.
    """

    envs: list[Env[Any, Any]]

    def __init__(
        self,
        factories: Iterable[EnvFactory],
        *,
        workers: int | None = None,
        caller_works: bool = True,
        observation_mode: ObservationMode = "same",
        autoreset_mode: AutoresetMode = AutoresetMode.NEXT_STEP,
        copy: bool = True,
        statistics: bool = False,
        stand_ins: bool = True,
        doorbell: Doorbell = "auto",
    ) -> None:
        checked = checked_factories(factories)
        self._shares = shares = share_out(len(checked), workers, caller_works)
        self.envs = envs = open_environments(checked)
        try:
            self.num_envs = len(envs)
            self.autoreset_mode = autoreset_mode
            self.metadata = dict(envs[0].metadata)
            self.render_mode = envs[0].render_mode
            self.spaces = agree(
                [env.observation_space for env in envs],
                [env.action_space for env in envs],
                observation_mode,
            )
            self.copy, self._statistics = copy, statistics
            self._own_envs = envs[shares.num_worker_slots :]
            self._pipes = DoorbellPipes(doorbell, len(shares.workers))
            self._transport = transport = _ThreadTransport()
            may_spin = len(shares.workers) < available_cores()
            setups = self._prepare(shared=False, may_spin=may_spin, stand_ins=stand_ins)
        except BaseException:
            close_environments(envs, reporting=False)
            raise
        for setup in setups:
            mailbox = _ThreadMailbox()
            board = self._memory.board(may_spin, self._pipes.ends())
            share = envs[setup.first : setup.last]
            transport.start(Worker(setup, share, self._columns, board, mailbox), mailbox)
