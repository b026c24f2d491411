"""An actor's side: a pool, and the caller's requests to it, one after the other.

Its methods run in the main thread of the actor's process, where the environments were built.
"""

from __future__ import annotations

import os
import pickle
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from shoal._spaces import Layout
from shoal.errors import ReceiveTimeoutError
from shoal.pools._base import Batch, Pool
from shoal.pools._batches import batch_rows, join_batches
from shoal.pools._drain import drain_after_failure
from shoal.pools._inline import InlinePool
from shoal.pools._processes.env_registry import register_specs
from shoal.pools._processes.error_packing import PackedError, pack_error
from shoal.pools._ray.actor_recipe import unpack_part
from shoal.pools._ray.cluster import Node
from shoal.pools._ray.messages import (
    REQUESTS,
    Answer,
    Failed,
    Introduction,
    Rows,
    Task,
    pack_rows,
    packed,
)

__all__ = ["PoolActor"]

_LOOK = 0.002
"""Seconds to wait for slots before looking at the clock."""

_TOGETHER = 0.005
"""Seconds that a slot which is done waits for others to be answered with it."""

_PATIENCE = 0.02
"""Seconds after which a request is answered though nothing is done, since another may wait."""

_SHARE, _LONGEST = 0.1, 0.25
"""Of the time that nothing was done, so much may a request last, up to so many seconds."""


class PoolActor:
    """A pool in a process of Ray's."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._flying: dict[int, int] = {}  # the number of the task that each slot is at
        self._answers: dict[int, Answer] = {}
        self._newest = 0  # task
        self._quiet_since = time.monotonic()

    def open(self, part: bytes, specs: Sequence[bytes], mode: Any) -> Introduction | PackedError:
        """Build the pool, and say what it is; ``mode`` is how observation spaces must agree."""
        try:
            register_specs(specs)
            self._pool = pool = unpack_part(part)()
            self._layout = Layout.of(pool.spaces.single_observation)
            return self._introduction(pool, mode)
        except BaseException as error:
            return pack_error(error)

    def _introduction(self, pool: Pool, mode: Any) -> Introduction:
        spaces = [(pool.spaces.single_observation, pool.spaces.single_action)] * pool.num_envs
        if mode != "same":
            theirs = pool.call("observation_space")
            spaces = [(one, pool.spaces.single_action) for one in theirs]
        return Introduction(
            spaces,
            pool.autoreset_mode,
            pool.metadata,
            pool.render_mode,
            Node.here(),
            os.getpid(),
            type(pool).__name__,
        )

    def work(self, number: int, tasks: Sequence[Task]) -> Answer:
        """Begin tasks, and answer what is done.

        A request with a number that was answered before was sent twice, since its caller was
        interrupted and cannot know: it gets the same answer. So does a task count once.
        """
        if number in self._answers:
            return self._answers[number]
        outcomes: list[Rows | Failed] = []
        is_whole = False
        for task in tasks:
            if task.number > self._newest:
                self._newest = task.number
                outcomes += self._begun(task)
                is_whole |= task.is_whole
        outcomes += self._gathered(is_whole)
        answer = Answer(outcomes, len(self._flying))
        remembered = [*self._answers.items()][1 - REQUESTS :]
        self._answers = dict([*remembered, (number, answer)])
        return answer

    def _begun(self, task: Task) -> list[Rows | Failed]:
        """Begin a task; a step of all slots is done at once."""
        pool = self.pool
        slots = task.slots.tolist()
        self._quiet_since = time.monotonic()
        try:
            if task.seeds is not None:
                options = pickle.loads(task.options) if task.options else None
                pool.reset(task.slots, task.seeds, options)
            elif task.is_whole:
                batch = Batch(task.slots, *pool.step(task.actions))
                return [self._packed(task.number, batch)]
            else:
                pool.send(task.actions, task.slots)
        except Exception as error:
            return [Failed(task.number, slots, pack_error(error))]
        self._flying.update(dict.fromkeys(slots, task.number))
        return []

    def _gathered(self, is_whole: bool) -> list[Rows | Failed]:
        """Wait for slots, together with those that are done soon after; for all, if it is whole."""
        batches: dict[int, list[Batch]] = {}
        failures: list[Rows | Failed] = []
        begun, first = time.monotonic(), None
        least = 1
        while self._flying:
            now = time.monotonic()
            if not is_whole and self._is_enough(now, begun, first):
                break
            try:
                came = [self._received(None if is_whole else min(least, len(self._flying)))]
                # An inline pool works within the call, and as much as it is asked to.
                least *= 2 if isinstance(self.pool, InlinePool) else 1
            except ReceiveTimeoutError:
                continue
            except Exception as error:
                remains = drain_after_failure(self.pool, list(self._flying), error)
                came = remains.batches
                for slots, cause in remains.failures:
                    failures += self._failed(slots, cause)
            for batch in came:
                self._sort_in(batch, batches)
            first = first or now
            self._quiet_since = now
        rows = [
            self._packed(number, join_batches(self._layout, found))
            for number, found in batches.items()
        ]
        return rows + failures

    @property
    def pool(self) -> Pool:
        """What it hosts, once that is built."""
        assert self._pool is not None, "the caller has opened it first"
        return self._pool

    def _packed(self, number: int, batch: Batch) -> Rows | Failed:
        return pack_rows(self._layout, number, batch, self.pool.num_envs)

    def _received(self, least: int | None) -> Batch:
        return self.pool.recv(min_slots=least, timeout=None if least is None else _LOOK)

    def _is_enough(self, now: float, begun: float, first: float | None) -> bool:
        if first is not None:
            return now - first >= _TOGETHER
        quiet = min(_LONGEST, _SHARE * (now - self._quiet_since))
        return now - begun >= max(_PATIENCE, quiet)

    def _sort_in(self, batch: Batch, batches: dict[int, list[Batch]]) -> None:
        """Put the rows of a batch with others of the same tasks."""
        numbers = np.array([self._flying.pop(slot) for slot in batch.slots.tolist()])
        for number in dict.fromkeys(numbers.tolist()):
            rows = np.flatnonzero(numbers == number).tolist()
            part = batch if len(rows) == len(numbers) else batch_rows(self._layout, batch, rows)
            batches.setdefault(number, []).append(part)

    def _failed(self, slots: Sequence[int], error: BaseException) -> list[Rows | Failed]:
        by_number: dict[int, list[int]] = {}
        for slot in slots:
            by_number.setdefault(self._flying.pop(slot), []).append(slot)
        told = pack_error(error)
        return [Failed(number, lost, told) for number, lost in by_number.items()]

    def latest(self, slots: Any) -> bytes | PackedError:
        """The newest observations of these slots, pickled."""
        try:
            return packed(self.pool.latest(slots))
        except Exception as error:
            return pack_error(error)

    def call(self, request: bytes) -> bytes | PackedError:
        """Reach environments, as a pool's ``call`` does; its arguments and results are pickled."""
        try:
            what, args, slots, kwargs = pickle.loads(request)
            return packed(self.pool.call(what, *args, slots=slots, **kwargs))
        except Exception as error:
            return pack_error(error)

    def close(self) -> PackedError | None:
        """Close the environments."""
        try:
            if self._pool is not None:
                self._pool.close()
        except BaseException as error:
            return pack_error(error)
        return None
