"""The part of pools with workers that is not stepping: shared memory, supervision, closing."""

from __future__ import annotations

import atexit
import os
import warnings
from collections import deque
from typing import Any
from weakref import WeakSet

import numpy as np
from gymnasium import Env
from gymnasium.vector import AutoresetMode

from shoal import _native
from shoal._memory import BoardMemory, VectorColumns
from shoal._spaces import Layout, VectorSpaces
from shoal.pools._base import WorkerState, caller_state, check_open
from shoal.pools._doorbell_pipes import DoorbellPipes
from shoal.pools._environments import close_environments
from shoal.pools._messages import Close
from shoal.pools._messenger import Messenger
from shoal.pools._shares import Shares
from shoal.pools._worker import INBOX, Setup
from shoal.pools._worker_calls import WorkerCalls
from shoal.pools._worker_transport import WorkerTransport

__all__ = ["WorkerPoolBase"]

# Closed when the interpreter ends, so that no worker outlives it.
_open_pools: WeakSet[WorkerPoolBase] = WeakSet()

# A view stays valid until the batch after next, and a masked reset fills two banks for one batch.
_VIEWS = 3


@atexit.register
def _close_all() -> None:
    for pool in list(_open_pools):
        pool.close(terminate=True)


class WorkerPoolBase:
    """Owns the memory that a pool shares with its workers, and closes both.

    A derived pool starts the workers and supervises them; it calls :meth:`_prepare` once it knows
    their spaces.
    """

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
        """Lay out the memory and build the caller's side; return the setup of each worker."""
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
        self._ledger = self._group.ledger
        self._messenger = Messenger(
            self._transport, self._group, len(shares.workers), self._check_workers
        )
        own_envs = dict(enumerate(self._own_envs, shares.num_worker_slots))
        self._calls = WorkerCalls(self._messenger, own_envs, count, self._check_workers)
        # The numbers of the banks that rounds fill in rotation, and private ones for other batches.
        self._round_banks = deque(range(1, 1 + views) if views else [INBOX])
        private = VectorColumns(observations, actions, count, views) if views else None
        self._batch_banks: deque[_native.Bank | None] = deque(
            [private.bank(number) for number in range(views)] if private else [None]
        )
        self._owners = np.array(shares.owners())
        self._all_slots = np.arange(count)
        self._all_slots.flags.writeable = False
        self._is_step_async = False  # whether `begin_step` started the round
        self._closed = False
        self._use = _native.ExclusiveUse()
        self._process = os.getpid()
        self._next_check = 0.0
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

    def _check_workers(self) -> None:
        """Check that the workers are alive; called about every tick while the caller waits."""

    def _check_usable(self, doing: str) -> None:
        check_open(self._closed, doing)
        if self._messenger.failure is not None:
            raise self._messenger.failure.with_traceback(None)

    def worker_states(self) -> list[WorkerState]:
        """Return the workers, and the caller if it has a share."""
        states = []
        for worker, (first, last) in enumerate(self._shares.workers):
            process, thread = self._transport.location(worker)
            slots, restarts = range(first, last), self._messenger.restarts[worker]
            states.append(WorkerState(f"worker {worker}", slots, "", process, thread, restarts))
        if self._shares.own:
            states.append(caller_state(range(self._shares.num_worker_slots, self.num_envs)))
        return states

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and end the workers; a second call does nothing.

        Args:
            terminate: End workers at once, without closing their environments.
            timeout: Seconds until workers that are still running are killed.
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
                    self._messenger.send(worker, Close(), timeout)
        except BaseException as error:  # workers that do not read their messages are killed
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
            "a vector with workers cannot be copied or pickled, since they own its environments. "
            "Make another one, or use backend='inline'"
        )

    def abandon(self) -> None:
        """End the workers of a pool that was garbage-collected without being closed."""
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
