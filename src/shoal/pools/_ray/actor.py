"""The actor: a pool in a Ray process, and the requests of the caller, one after the other.

Ray runs the methods in the main thread of the process, where the environments are built.
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
from shoal.pools._ray.actor_recipe import unpack_recipe
from shoal.pools._ray.cluster import Node
from shoal.pools._ray.messages import (
    MAX_REQUESTS,
    FailedSlots,
    PoolInfo,
    Response,
    Rows,
    Task,
    pack,
    pack_rows,
)

__all__ = ["PoolActor"]

_POLL_SECONDS = 0.002
"""How long one ``recv`` waits before the time is checked."""

_COLLECT_SECONDS = 0.005
"""How long the first slot that is done waits for others to share its response."""

_MIN_WAIT_SECONDS = 0.02
"""How long a request waits for results, at least, before its response is empty."""

_WAIT_FRACTION, _MAX_WAIT_SECONDS = 0.1, 0.25
"""A request waits for this fraction of the time since the last result, up to a maximum."""


class PoolActor:
    """A pool in a Ray process."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._in_flight: dict[int, int] = {}  # the number of the task of each slot
        self._responses: dict[int, Response] = {}  # to the newest requests
        self._newest_task = 0
        self._last_progress = time.monotonic()

    def open(self, recipe: bytes, specs: Sequence[bytes], mode: Any) -> PoolInfo | PackedError:
        """Build the pool, and describe it.

        Args:
            recipe: How to build the pool, pickled.
            specs: Environments that the caller has registered, pickled.
            mode: How the observation spaces of environments must agree.
        """
        try:
            register_specs(specs)
            self._pool = pool = unpack_recipe(recipe)()
            self._layout = Layout.of(pool.spaces.single_observation)
            return self._describe(pool, mode)
        except BaseException as error:
            return pack_error(error)

    def _describe(self, pool: Pool, mode: Any) -> PoolInfo:
        spaces = [(pool.spaces.single_observation, pool.spaces.single_action)] * pool.num_envs
        if mode != "same":
            observation_spaces = pool.call("observation_space")
            spaces = [(space, pool.spaces.single_action) for space in observation_spaces]
        return PoolInfo(
            spaces,
            pool.autoreset_mode,
            pool.metadata,
            pool.render_mode,
            Node.here(),
            os.getpid(),
            type(pool).__name__,
        )

    def work(self, number: int, tasks: Sequence[Task]) -> Response:
        """Start tasks, and return slots that are done.

        An interrupted caller may send a request again. A request number that was answered before
        gets the same response, and a task number is started once.
        """
        if number in self._responses:
            return self._responses[number]
        outcomes: list[Rows | FailedSlots] = []
        is_whole = False
        for task in tasks:
            if task.number > self._newest_task:
                self._newest_task = task.number
                outcomes += self._start(task)
                is_whole |= task.is_whole
        outcomes += self._collect(is_whole)
        response = Response(outcomes, len(self._in_flight))
        kept = [*self._responses.items()][1 - MAX_REQUESTS :]
        self._responses = dict([*kept, (number, response)])
        return response

    def _start(self, task: Task) -> list[Rows | FailedSlots]:
        """Start a task; a step of all slots is completed at once."""
        pool = self.pool
        slots = task.slots.tolist()
        self._last_progress = time.monotonic()
        try:
            if task.seeds is not None:
                options = pickle.loads(task.options) if task.options else None
                pool.reset(task.slots, task.seeds, options)
            elif task.is_whole:
                batch = Batch(task.slots, *pool.step(task.actions))
                return [self._pack_rows(task.number, batch)]
            else:
                pool.send(task.actions, task.slots)
        except Exception as error:
            return [FailedSlots(task.number, slots, pack_error(error))]
        self._in_flight.update(dict.fromkeys(slots, task.number))
        return []

    def _collect(self, is_whole: bool) -> list[Rows | FailedSlots]:
        """Wait for slots that are done, for all slots if ``is_whole``."""
        batches: dict[int, list[Batch]] = {}
        failures: list[Rows | FailedSlots] = []
        start, first_done = time.monotonic(), None
        min_slots = 1
        while self._in_flight:
            now = time.monotonic()
            if not is_whole and self._should_respond(now, start, first_done):
                break
            try:
                received = [
                    self._receive(None if is_whole else min(min_slots, len(self._in_flight)))
                ]
                # An inline pool steps slots during `recv`, and only as many as requested.
                min_slots *= 2 if isinstance(self.pool, InlinePool) else 1
            except ReceiveTimeoutError:
                continue
            except Exception as error:
                result = drain_after_failure(self.pool, list(self._in_flight), error)
                received = result.batches
                for slots, cause in result.failures:
                    failures += self._pack_failure(slots, cause)
            for batch in received:
                self._split_by_task(batch, batches)
            first_done = first_done or now
            self._last_progress = now
        rows = [
            self._pack_rows(number, join_batches(self._layout, parts))
            for number, parts in batches.items()
        ]
        return rows + failures

    @property
    def pool(self) -> Pool:
        """The pool, after :meth:`open`."""
        assert self._pool is not None
        return self._pool

    def _pack_rows(self, number: int, batch: Batch) -> Rows | FailedSlots:
        return pack_rows(self._layout, number, batch, self.pool.num_envs)

    def _receive(self, min_slots: int | None) -> Batch:
        timeout = None if min_slots is None else _POLL_SECONDS
        return self.pool.recv(min_slots=min_slots, timeout=timeout)

    def _should_respond(self, now: float, start: float, first_done: float | None) -> bool:
        if first_done is not None:
            return now - first_done >= _COLLECT_SECONDS
        wait = min(_MAX_WAIT_SECONDS, _WAIT_FRACTION * (now - self._last_progress))
        return now - start >= max(_MIN_WAIT_SECONDS, wait)

    def _split_by_task(self, batch: Batch, batches: dict[int, list[Batch]]) -> None:
        """Add the rows of a batch to the batches of their tasks."""
        numbers = np.array([self._in_flight.pop(slot) for slot in batch.slots.tolist()])
        for number in dict.fromkeys(numbers.tolist()):
            rows = np.flatnonzero(numbers == number).tolist()
            part = batch if len(rows) == len(numbers) else batch_rows(self._layout, batch, rows)
            batches.setdefault(number, []).append(part)

    def _pack_failure(self, slots: Sequence[int], error: BaseException) -> list[Rows | FailedSlots]:
        by_number: dict[int, list[int]] = {}
        for slot in slots:
            by_number.setdefault(self._in_flight.pop(slot), []).append(slot)
        packed = pack_error(error)
        return [FailedSlots(number, failed, packed) for number, failed in by_number.items()]

    def latest(self, slots: Any) -> bytes | PackedError:
        """Return the newest observations of these slots, pickled."""
        try:
            return pack(self.pool.latest(slots))
        except Exception as error:
            return pack_error(error)

    def call(self, request: bytes) -> bytes | PackedError:
        """Perform a pool's ``call``; the arguments and the results are pickled."""
        try:
            what, args, slots, kwargs = pickle.loads(request)
            return pack(self.pool.call(what, *args, slots=slots, **kwargs))
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
