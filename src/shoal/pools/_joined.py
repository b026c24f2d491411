"""Several pools as one: the slots of the first, then those of the second, and so on."""

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
from shoal.pools._slot_partition import CheckedActions, SlotPartition

__all__ = ["EachSlot", "JoinedPool"]

EachSlot = Mapping[str, Sequence[Any]]
"""Arguments of the pools' own methods by name, with a value for each slot."""

_NUMBER = 0
"""Of all requests: a slot is in flight once at a time."""

_LOOK = 0.001
"""Seconds to wait for one pool before looking at the next."""


class JoinedPool:
    """The contract over several pools, which must agree on what their slots are.

    A step is begun in all of them before the first is waited for.
    """

    envs = None

    def __init__(self, pools: Sequence[Pool]) -> None:
        self.pools = list(pools)
        first = self.pools[0]
        for place, pool in enumerate(self.pools[1:], 1):
            _check_alike(first, pool, place)
        self._partition = SlotPartition([pool.num_envs for pool in self.pools])
        self.num_envs = self._partition.num_envs
        self.autoreset_mode = first.autoreset_mode
        self.metadata = first.metadata
        self.render_mode = first.render_mode
        self.copy = True
        self.restarts = all(pool.restarts for pool in self.pools)
        single = first.spaces.single_observation
        usual = all(
            pool.spaces.observation == batch_space(single, pool.num_envs) for pool in self.pools
        )
        self.spaces = VectorSpaces(
            single,
            batch_space(single, self.num_envs)
            if usual
            else batch_differing_spaces([single] * self.num_envs),
            first.spaces.single_action,
            batch_space(first.spaces.single_action, self.num_envs),
        )
        self._observations = Layout.of(single)
        self._actions = CheckedActions(self.spaces, self.num_envs, self.autoreset_mode)
        self._arrivals = Arrivals(self._observations, self.num_envs)
        self._ledger = self._arrivals.ledger
        self._rows: dict[int, Batch] = {}  # of the parts that have ended a step
        # Of pools that have a patience of their own.
        patience = [getattr(pool, "timeout", None) for pool in self.pools]
        self._patience = min((each for each in patience if each is not None), default=None)

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return self._ledger.in_flight

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        chosen = self._idle(slots)
        given = checked_seeds(seeds, len(chosen))

        def begin(pool: Pool, places: list[int], own: npt.NDArray[np.int64]) -> None:
            pool.reset(own, [given[place] for place in places], options)

        self._begin(chosen, begin)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and send them to their pools."""
        self._send(actions, slots, {})

    def _send(self, actions: Any, slots: SlotChoice, each: EachSlot) -> None:
        chosen = self._idle(slots)
        leaves = self._actions.leaves(actions, chosen)

        def begin(pool: Pool, places: list[int], own: npt.NDArray[np.int64]) -> None:
            pool.send(self._actions.part(leaves, places), own, **_at(places, each))

        self._begin(chosen, begin)

    def _begin(
        self,
        slots: npt.NDArray[np.int64],
        begin: Callable[[Pool, list[int], npt.NDArray[np.int64]], None],
    ) -> None:
        """Begin something in each pool that has some of these slots.

        They are noted to be in flight, in their order, before it; those of pools that have not
        taken them are not, however it ends.
        """
        self._arrivals.expect(slots.tolist(), _NUMBER)
        shares = self._shares(slots)
        before = [pool.in_flight for pool, _, _ in shares]
        try:
            for share in shares:
                begin(*share)
        finally:
            for (pool, places, _), count in zip(shares, before, strict=True):
                if pool.in_flight == count:
                    self._ledger.clear(slots[places])

    def begin_step(self, actions: Any) -> None:
        """Send an action for every slot."""
        self._begin_step(actions, {})

    def _begin_step(self, actions: Any, each: EachSlot) -> None:
        self._idle(None)
        leaves = self._actions.leaves(actions, None)
        self._ledger.begin_round()
        try:
            for pool, places, _ in self._shares(np.arange(self.num_envs)):
                pool.begin_step(self._actions.part(leaves, places), **_at(places, each))
        except BaseException:
            self._end_parts(None, [])
            raise

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun; a failure costs the rows of all parts."""
        self._ledger.check_round()
        batches: list[Batch] = []
        failures = self._end_parts(timeout, batches)
        if failures:
            raise failures[0]
        return join_batches(self._observations, batches)[1:]

    def _end_parts(self, timeout: float | None, batches: list[Batch]) -> list[Exception]:
        """Wait for each part that is in flight; after a timeout, it can be asked for again."""
        deadline = None if timeout is None else time.monotonic() + timeout
        failures: list[Exception] = []
        for place, pool in enumerate(self.pools):
            if pool.in_flight:
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                try:
                    self._rows[place] = Batch(np.arange(pool.num_envs), *pool.end_step(left))
                except Exception as error:
                    if isinstance(error, ReceiveTimeoutError) and pool.in_flight:
                        raise
                    self._tell_place(error, place)
                    failures.append(error)
        rows, self._rows = self._rows, {}
        self._ledger.end_round()
        batches += [self._moved(place, rows[place]) for place in sorted(rows)]
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
        """Wait for slots in flight, first come, first served, and return what is done."""
        if self._ledger.is_in_round:
            return Batch(np.arange(self.num_envs), *self.end_step(timeout))
        if not self._ledger.in_flight:
            self.pools[0].latest([])  # raises if they are closed
        asked = None if slots is None else slot_numbers(slots, self.num_envs)
        wanted = self._ledger.wanted(min_slots, max_slots, asked)
        begun = time.monotonic()
        while not self._arrivals.has(wanted):
            patience = self._granted() if timeout is None else timeout
            self._look(None if patience is None else begun + patience)
        return self._arrivals.take_wanted(wanted)

    def _granted(self) -> float | None:
        """Seconds of a caller that says nothing, and what pools have announced to need."""
        if self._patience is None:
            return None
        announced: list[float] = [getattr(pool, "announced", 0.0) for pool in self.pools]
        return float(self._patience + max(announced))

    def _look(self, deadline: float | None) -> None:
        """Look at each pool once for what has come."""
        owners = set(self._partition.owners(self._arrivals.missing()).tolist())
        for place, pool in enumerate(self.pools):
            if place not in owners:
                continue
            try:
                self._keep(place, pool.recv(min_slots=1, timeout=_LOOK))
            except ReceiveTimeoutError:
                if deadline is not None and time.monotonic() > deadline:
                    raise ReceiveTimeoutError(
                        f"{self._ledger.done} of {self._ledger.in_flight} slots were done in time; "
                        "those in flight can still be received"
                    ) from None
            except Exception as error:
                self._forget_failed(place, pool, error)
                self._tell_place(error, place)
                raise

    def _forget_failed(self, place: int, pool: Pool, error: BaseException) -> None:
        """After a failure: which slots are in flight no more."""
        start = self._partition.slots_of(place).start
        own = [slot for slot in self._arrivals.missing() if self._partition.owners(slot) == place]
        remains = drain_after_failure(pool, [slot - start for slot in own], error)
        for batch in remains.batches:
            self._keep(place, batch)
        for slots, _ in remains.failures:
            self._ledger.clear(np.array(slots, np.int64) + start)

    def _keep(self, place: int, batch: Batch) -> None:
        self._arrivals.add(_NUMBER, self._moved(place, batch))

    def _moved(self, place: int, batch: Batch) -> Batch:
        """A batch of a part, with the slots' numbers here."""
        moved = batch._replace(slots=batch.slots + self._partition.slots_of(place).start)
        self._actions.note(moved)
        return moved

    def _tell_place(self, error: Exception, place: int) -> None:
        start = self._partition.slots_of(place).start
        error.add_note(f"shoal: its slot 0 is slot {start} of {self.num_envs} in all")

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        chosen = slot_numbers(slots, self.num_envs)
        order: list[int] = []
        found = []
        for pool, places, own in self._shares(chosen):
            found.append(batch_leaves(self._observations, pool.latest(own)))
            order += places
        joined = take_rows(join_leaves(found), np.argsort(order).tolist())
        return batch_of_leaves(self._observations, *joined)

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        for pool in self.pools:
            pool.drop()
        self._rows.clear()
        self._arrivals.clear()

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment, wherever it is; results in the order of the slots."""
        chosen = slot_numbers(slots, self.num_envs)
        results: list[Any] = [None] * len(chosen)
        for pool, places, own in self._shares(chosen):
            found = pool.call(what, *args, slots=own, **kwargs)
            for place, result in zip(places, found, strict=True):
                results[place] = result
        return results

    def worker_states(self) -> list[WorkerState]:
        """The workers of all pools."""
        first, found = 0, []
        for place, pool in enumerate(self.pools):
            for state in pool.worker_states():
                slots = range(first + state.slots.start, first + state.slots.stop)
                found.append(state._replace(name=f"{place}: {state.name}", slots=slots))
            first += pool.num_envs
        return found

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close all pools, also after one has failed to."""
        failure: BaseException | None = None
        for pool in self.pools:
            try:
                pool.close(terminate=terminate, timeout=timeout)
            except BaseException as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def abandon(self) -> None:
        """Give back everything, for a vector that is garbage and was not closed."""
        for pool in self.pools:
            pool.abandon()

    def _idle(self, slots: SlotChoice) -> npt.NDArray[np.int64]:
        chosen = slot_numbers(slots, self.num_envs)
        self._ledger.check_idle(chosen)
        return chosen

    def _shares(
        self, slots: npt.NDArray[np.int64]
    ) -> list[tuple[Pool, list[int], npt.NDArray[np.int64]]]:
        """For each pool that has some of these slots: their places here, their numbers there."""
        return [
            (self.pools[place], places, own) for place, places, own in self._partition.shares(slots)
        ]


def _at(places: list[int], each: EachSlot) -> dict[str, list[Any]]:
    """The values at these places, by name."""
    return {name: [values[place] for place in places] for name, values in each.items()}


def _check_alike(first: Pool, other: Pool, place: int) -> None:
    for name in ("single_observation", "single_action"):
        ours, theirs = getattr(first.spaces, name), getattr(other.spaces, name)
        if ours != theirs:
            raise SpaceMismatchError(
                f"{name} of part {place} is {theirs}, that of part 0 is {ours}"
            )
    if first.autoreset_mode is not other.autoreset_mode:
        raise SpaceMismatchError(
            f"part {place} is reset in {other.autoreset_mode}, part 0 in {first.autoreset_mode}"
        )
