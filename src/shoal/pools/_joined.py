"""A pool made of several pools: the slots of the first, then those of the second, and so on."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from shoal._spaces import Layout, VectorSpaces
from shoal._spaces.leaves import batch_leaves, batch_of_leaves, join_leaves, take_rows
from shoal._types import Results
from shoal.errors import ReceiveTimeoutError, SpaceMismatchError
from shoal.pools._arrivals import Arrivals
from shoal.pools._base import Batch, Pool, SlotChoice, WorkerState, checked_seeds, slot_numbers
from shoal.pools._batches import join_batches
from shoal.pools._drain import drain_after_failure
from shoal.pools._environments import Called
from shoal.pools._slot_partition import ActionChecker, SlotPartition

__all__ = ["EachSlot", "JoinedPool"]

EachSlot = Mapping[str, Sequence[Any]]
"""Additional arguments of a pool's method by name, each with a value per slot."""

_REQUEST = 0
"""The number of every request: a slot has at most one request in flight."""

_POLL_SECONDS = 0.001
"""How long to wait for one pool before polling the next."""


class JoinedPool:
    """A pool whose slots belong to several pools.

    A step is started in every pool before the first result is awaited.

    Args:
        pools: Pools with equal spaces for one slot and the same autoreset mode.

    Raises:
        SpaceMismatchError: The spaces or autoreset modes of the pools differ.
    """

    envs = None

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = list(pools)
        first = self.pools[0]
        for part, pool in enumerate(self.pools[1:], 1):
            _check_compatible(first, pool, part)
        self._partition = SlotPartition([pool.num_envs for pool in self.pools])
        self.num_envs = self._partition.num_envs
        self.autoreset_mode = first.autoreset_mode
        self.metadata = first.metadata
        self.render_mode = first.render_mode
        self.copy = True
        self.restarts = all(pool.restarts for pool in self.pools)
        single = first.spaces.single_observation
        has_usual_batches = all(
            pool.spaces.observation == batch_space(single, pool.num_envs) for pool in self.pools
        )
        self.spaces = VectorSpaces(
            single,
            batch_space(single, self.num_envs)
            if has_usual_batches
            else batch_differing_spaces([single] * self.num_envs),
            first.spaces.single_action,
            batch_space(first.spaces.single_action, self.num_envs),
        )
        self._observations = Layout.of(single)
        self._actions = ActionChecker(self.spaces, self.num_envs, self.autoreset_mode)
        self._arrivals = Arrivals(self._observations, self.num_envs)
        self._ledger = self._arrivals.ledger
        self._results: dict[int, Batch] = {}  # of parts that have completed the step, by index
        # Some pools have a default timeout.
        timeouts = [getattr(pool, "timeout", None) for pool in self.pools]
        self._default_timeout = min((each for each in timeouts if each is not None), default=None)

    @property
    def in_flight(self) -> int:
        """How many slots were sent or reset, and not received yet."""
        return self._ledger.in_flight

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has a seed or None for each of these slots."""
        chosen = self._idle(slots)
        all_seeds = checked_seeds(seeds, len(chosen))

        def start(pool: Pool, rows: list[int], local_slots: npt.NDArray[np.int64]) -> None:
            pool.reset(local_slots, [all_seeds[row] for row in rows], options)

        self._start(chosen, start)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and send them to their pools."""
        self._send(actions, slots, {})

    def _send(self, actions: Any, slots: SlotChoice, each: EachSlot) -> None:
        chosen = self._idle(slots)
        leaves = self._actions.check(actions, chosen)

        def start(pool: Pool, rows: list[int], local_slots: npt.NDArray[np.int64]) -> None:
            pool.send(self._actions.part(leaves, rows), local_slots, **_select_rows(each, rows))

        self._start(chosen, start)

    def _start(
        self,
        slots: npt.NDArray[np.int64],
        start: Callable[[Pool, list[int], npt.NDArray[np.int64]], None],
    ) -> None:
        """Call ``start`` for each pool that has some of these slots.

        The slots are marked in flight first, to keep their order. Finally, also after an interrupt,
        the slots of pools that did not accept them become idle again.
        """
        self._arrivals.expect(slots.tolist(), _REQUEST)
        shares = self._shares(slots)
        before = [pool.in_flight for pool, _, _ in shares]
        try:
            for share in shares:
                start(*share)
        finally:
            for (pool, rows, _), count in zip(shares, before, strict=True):
                if pool.in_flight == count:
                    self._ledger.clear(slots[rows])

    def begin_step(self, actions: Any) -> None:
        """Send an action for every slot."""
        self._begin_step(actions, {})

    def _begin_step(self, actions: Any, each: EachSlot) -> None:
        self._idle(None)
        leaves = self._actions.check(actions, None)
        self._ledger.begin_round()
        try:
            for pool, rows, _ in self._shares(np.arange(self.num_envs)):
                pool.begin_step(self._actions.part(leaves, rows), **_select_rows(each, rows))
        except BaseException:
            self._end_steps(None, [])
            raise

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started.

        If a part fails, the results of all parts are lost.
        """
        self._ledger.check_round()
        batches: list[Batch] = []
        failures = self._end_steps(timeout, batches)
        if failures:
            raise failures[0]
        return join_batches(self._observations, batches)[1:]

    def _end_steps(self, timeout: float | None, batches: list[Batch]) -> list[Exception]:
        """Wait for each part that is in flight, and return the errors of those that failed.

        Adds the results of the others to ``batches``. It can be called again after a timeout.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        failures: list[Exception] = []
        for part, pool in enumerate(self.pools):
            if pool.in_flight:
                remaining = None if deadline is None else max(0.0, deadline - time.monotonic())
                try:
                    results = pool.end_step(remaining)
                    self._results[part] = Batch(np.arange(pool.num_envs), *results)
                except Exception as error:
                    if isinstance(error, ReceiveTimeoutError) and pool.in_flight:
                        raise
                    self._tell_place(error, part)
                    failures.append(error)
        by_part, self._results = self._results, {}
        self._ledger.end_round()
        batches += [self._renumbered(part, by_part[part]) for part in sorted(by_part)]
        return failures

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        self.begin_step(actions)
        return self.end_step()

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, and return those that are done, first come, first served."""
        if self._ledger.is_in_round:
            return Batch(np.arange(self.num_envs), *self.end_step(timeout))
        if not self._ledger.in_flight:
            self.pools[0].latest([])  # raises if the pools are closed
        requested = None if slots is None else slot_numbers(slots, self.num_envs)
        wanted = self._ledger.wanted(min_slots, max_slots, requested)
        start = time.monotonic()
        while not self._arrivals.has(wanted):
            limit = self._usual_timeout() if timeout is None else timeout
            self._poll(None if limit is None else start + limit)
        return self._arrivals.take_wanted(wanted)

    def _usual_timeout(self) -> float | None:
        """Return the timeout of a ``recv`` without one.

        It includes the time that pools have announced to need.
        """
        if self._default_timeout is None:
            return None
        announced: list[float] = [getattr(pool, "announced", 0.0) for pool in self.pools]
        return float(self._default_timeout + max(announced))

    def _poll(self, deadline: float | None) -> None:
        """Poll each pool once for results."""
        owners = set(self._partition.owners(self._arrivals.missing()).tolist())
        for part, pool in enumerate(self.pools):
            if part not in owners:
                continue
            try:
                self._add(part, pool.recv(min_slots=1, timeout=_POLL_SECONDS))
            except ReceiveTimeoutError:
                if deadline is not None and time.monotonic() > deadline:
                    raise ReceiveTimeoutError(
                        f"timed out with {self._ledger.done} of {self._ledger.in_flight} slots "
                        "done; all of them can still be received"
                    ) from None
            except Exception as error:
                self._drain_failed(part, pool, error)
                self._tell_place(error, part)
                raise

    def _drain_failed(self, part: int, pool: Pool, error: BaseException) -> None:
        """Receive the slots that are done in a part that failed, and make the failed ones idle."""
        start = self._partition.slots_of(part).start
        missing = [
            slot for slot in self._arrivals.missing() if self._partition.owners(slot) == part
        ]
        result = drain_after_failure(pool, [slot - start for slot in missing], error)
        for batch in result.batches:
            self._add(part, batch)
        for slots, _ in result.failures:
            self._ledger.clear(np.array(slots, np.int64) + start)

    def _add(self, part: int, batch: Batch) -> None:
        self._arrivals.add(_REQUEST, self._renumbered(part, batch))

    def _renumbered(self, part: int, batch: Batch) -> Batch:
        """Renumber the slots of a part's batch for this pool, and note which have finished."""
        renumbered = batch._replace(slots=batch.slots + self._partition.slots_of(part).start)
        self._actions.note_finished(renumbered)
        return renumbered

    def _tell_place(self, error: Exception, part: int) -> None:
        """Add a note to an error that names the part and its first slot."""
        start = self._partition.slots_of(part).start
        error.add_note(f"shoal: in part {part}, whose slot 0 is slot {start} of {self.num_envs}")

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""
        chosen = slot_numbers(slots, self.num_envs)
        all_rows: list[int] = []
        parts = []
        for pool, rows, local_slots in self._shares(chosen):
            parts.append(batch_leaves(self._observations, pool.latest(local_slots)))
            all_rows += rows
        joined = take_rows(join_leaves(parts), np.argsort(all_rows).tolist())
        return batch_of_leaves(self._observations, *joined)

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        for pool in self.pools:
            pool.drop()
        self._results.clear()
        self._arrivals.clear()

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call a method or a function with each environment, or read an attribute.

        Returns the results in the order of the slots.
        """
        chosen = slot_numbers(slots, self.num_envs)
        results: list[Any] = [None] * len(chosen)
        for pool, rows, local_slots in self._shares(chosen):
            answers = pool.call(what, *args, slots=local_slots, **kwargs)
            for row, answer in zip(rows, answers, strict=True):
                results[row] = answer
        return results

    def worker_states(self) -> list[WorkerState]:
        """Return the workers of all pools."""
        first, states = 0, []
        for part, pool in enumerate(self.pools):
            for state in pool.worker_states():
                slots = range(first + state.slots.start, first + state.slots.stop)
                states.append(state._replace(name=f"{part}: {state.name}", slots=slots))
            first += pool.num_envs
        return states

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close all pools, even if closing one of them fails."""
        failure: BaseException | None = None
        for pool in self.pools:
            try:
                pool.close(terminate=terminate, timeout=timeout)
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """Release everything, for a vector that was garbage-collected without being closed."""
        for pool in self.pools:
            pool.abandon()

    def _idle(self, slots: SlotChoice) -> npt.NDArray[np.int64]:
        chosen = slot_numbers(slots, self.num_envs)
        self._ledger.check_idle(chosen)
        return chosen

    def _shares(
        self, slots: npt.NDArray[np.int64]
    ) -> list[tuple[Pool, list[int], npt.NDArray[np.int64]]]:
        """Return each pool that has some of these slots, with its share of them.

        A share consists of the rows of its slots in ``slots`` and of their numbers in the pool.
        """
        return [
            (self.pools[share.part], share.rows, share.local_slots)
            for share in self._partition.shares(slots)
        ]


def _select_rows(each: EachSlot, rows: list[int]) -> dict[str, list[Any]]:
    """Return the values of these rows, by name."""
    return {name: [values[row] for row in rows] for name, values in each.items()}


def _check_compatible(first: Pool, other: Pool, part: int) -> None:
    for name in ("single_observation", "single_action"):
        ours, theirs = getattr(first.spaces, name), getattr(other.spaces, name)
        if ours != theirs:
            raise SpaceMismatchError(
                f"{name} of part {part} is {theirs}, expected {ours} as in part 0"
            )
    if first.autoreset_mode is not other.autoreset_mode:
        raise SpaceMismatchError(
            f"the autoreset mode of part {part} is {other.autoreset_mode.name}, expected "
            f"{first.autoreset_mode.name} as in part 0"
        )
