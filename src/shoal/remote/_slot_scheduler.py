"""The scheduler of a server session: concurrent requests, deadlines and late results."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space, iterate

from shoal._spaces import Layout
from shoal._spaces.leaves import batch_leaves, batch_of_leaves, take_rows
from shoal._types import Event
from shoal.errors import ReceiveTimeoutError
from shoal.pools import Batch, Pool
from shoal.pools._batches import batch_rows
from shoal.pools._drain import drain_after_failure
from shoal.remote._device import STATUS, Status

__all__ = ["LATE", "Completed", "Failed", "SlotScheduler", "Task"]

LATE = "late"
"""The key of the info with the result of a step that missed its deadline."""

NOT_CANCELLED = "not cancelled"
"""The key of the info with the error of a device that failed to cancel after a deadline."""

Slots = npt.NDArray[np.int64]

_NO_INFO: Mapping[str, str] = {}


@dataclass
class Task:
    """The slots of one request, to be stepped or reset.

    ``deadlines`` are points in time, one per slot, or empty.
    """

    number: int
    slots: Slots
    actions: Any = None
    seeds: list[int | None] | None = None
    options: dict[str, Any] | None = None
    deadlines: list[float] = field(default_factory=list)
    started: float = field(default_factory=time.perf_counter)


@dataclass(frozen=True)
class Completed:
    """Results of some or all slots of a task."""

    task: Task
    batch: Batch


@dataclass(frozen=True)
class Failed:
    """An error instead of results, for some or all slots of a task."""

    task: Task
    slots: list[int]
    error: BaseException


class SlotScheduler:
    """Runs tasks on a pool.

    A slot that misses its deadline returns its newest observation at once and continues. The next
    task of that slot waits until it is done, and returns the late result as an info.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._layout = Layout.of(pool.spaces.single_observation)
        self._one_slot = batch_space(pool.spaces.single_observation, 1)
        self._actions = Layout.of(pool.spaces.single_action, ordered_like=pool.spaces.action)
        self._tasks: dict[int, Task] = {}  # by slot, without overdue slots
        self._deadlines: dict[int, float] = {}  # by slot
        self._overdue: set[int] = set()  # slots that are running after their deadline
        self._waiting: list[Task] = []  # for overdue slots
        self._late: dict[int, dict[str, Any]] = {}  # results to report with the next response

    @property
    def is_busy(self) -> bool:
        """Whether there is anything to poll for."""
        return bool(self._tasks or self._overdue or self._waiting)

    @property
    def is_uniform(self) -> bool:
        """Whether all slots are idle and none has a late result to report."""
        return not (self._tasks or self._overdue or self._waiting or self._late)

    @property
    def count(self) -> int:
        """Number of requests that are not answered in full."""
        return len({id(task) for task in self._tasks.values()}) + len(self._waiting)

    def start(self, task: Task) -> None:
        """Start a task; the part for slots that are still busy waits for them.

        Raises the exception of the pool if the task cannot be started.
        """
        waiting = {slot for each in self._waiting for slot in each.slots.tolist()}
        must_wait = np.isin(task.slots, list(self._overdue | waiting))
        if not must_wait.any():
            self._start(task)
            return
        if not must_wait.all():
            self._start(self._part(task, np.flatnonzero(~must_wait)))
        self._waiting.append(self._part(task, np.flatnonzero(must_wait)))

    def _part(self, task: Task, positions: Slots) -> Task:
        """Return a task for some slots of a task."""
        rows = positions.tolist()
        if len(rows) == len(task.slots):
            return task
        part = replace(task, slots=task.slots[rows])
        if task.deadlines:
            part.deadlines = [task.deadlines[row] for row in rows]
        if task.seeds is not None:
            part.seeds = [task.seeds[row] for row in rows]
        else:
            leaves = take_rows(batch_leaves(self._actions, task.actions), rows)
            part.actions = batch_of_leaves(self._actions, *leaves)
        return part

    def _start(self, task: Task) -> None:
        if task.seeds is None:
            self.pool.send(task.actions, task.slots)
        else:
            self.pool.reset(task.slots, task.seeds, task.options)
        slots = task.slots.tolist()
        self._tasks.update(dict.fromkeys(slots, task))
        if task.deadlines:
            self._deadlines.update(zip(slots, task.deadlines, strict=True))

    def poll(self, timeout: float) -> Iterable[Completed | Failed]:
        """Wait for results or missed deadlines, and return all of them."""
        outcomes: list[Completed | Failed] = []
        if self._tasks or self._overdue:
            outcomes += self._receive(min(timeout, self._until_deadline()))
        if self._waiting:
            outcomes += self._start_waiting()
        outcomes += self._expire(time.monotonic())
        return outcomes

    def cancel(self, slots: Iterable[int]) -> list[Completed | Failed]:
        """Cancel steps that have not started; return them with status "not executed"."""
        chosen = set(slots)
        outcomes: list[Completed | Failed] = []
        for task in [task for task in self._waiting if chosen.issuperset(task.slots.tolist())]:
            self._waiting.remove(task)
            outcomes.append(self._without_result(task, task.slots.tolist(), Status.NOT_EXECUTED))
        outcomes += self._cancel_in_pool([slot for slot in self._tasks if slot in chosen])
        return outcomes

    def _cancel_in_pool(self, slots: list[int]) -> list[Completed | Failed]:
        cancel = getattr(self.pool, "cancel", None)
        if cancel is None or not slots:
            return []
        return [
            self._without_result(task, cancelled, Status.NOT_EXECUTED)
            for task, cancelled in self._pop_tasks(cancel(slots) or ())
        ]

    def _pop_tasks(self, slots: Iterable[int]) -> list[tuple[Task, list[int]]]:
        """Remove these slots from their tasks; return the slots by task."""
        groups: dict[int, tuple[Task, list[int]]] = {}
        for slot in slots:
            task = self._tasks.pop(slot)
            self._deadlines.pop(slot, None)
            groups.setdefault(task.number, (task, []))[1].append(slot)
        return list(groups.values())

    def _until_deadline(self) -> float:
        waiting = (each for task in self._waiting for each in task.deadlines)
        earliest = min((*self._deadlines.values(), *waiting), default=float("inf"))
        return max(0.0, earliest - time.monotonic())

    def _receive(self, timeout: float) -> list[Completed | Failed]:
        try:
            return self._split(self.pool.recv(min_slots=1, timeout=timeout))
        except ReceiveTimeoutError:
            return []
        except Exception as error:
            return self._recover(error)

    def _split(self, batch: Batch) -> list[Completed | Failed]:
        """Split a batch by task; store the results of overdue slots."""
        slots: list[int] = batch.slots.tolist()
        for row, slot in enumerate(slots):
            if slot in self._overdue:
                self._overdue.discard(slot)
                self._late[slot] = {
                    "observation": self._observation(batch, row),
                    "reward": float(batch.rewards[row]),
                    "terminated": bool(batch.terminated[row]),
                    "truncated": bool(batch.truncated[row]),
                }
        due = [slot for slot in slots if slot in self._tasks]
        outcomes: list[Completed | Failed] = []
        for task, own in self._pop_tasks(due):
            part = batch if len(own) == len(slots) else self._rows(batch, own)
            outcomes.append(Completed(task, self._with_late(part)))
        return outcomes

    def _rows(self, batch: Batch, slots: list[int]) -> Batch:
        rows = {slot: row for row, slot in enumerate(batch.slots.tolist())}
        return batch_rows(self._layout, batch, [rows[slot] for slot in slots])

    def _observation(self, batch: Batch, row: int) -> Any:
        """Return the observation of one row."""
        one = batch_rows(self._layout, batch, [row]).observations
        return next(iter(iterate(self._one_slot, one)))

    def _with_late(self, batch: Batch) -> Batch:
        """Add late results to the infos of a batch."""
        if not self._late:
            return batch
        late: list[Event] = [
            (row, {LATE: self._late.pop(slot)})
            for row, slot in enumerate(batch.slots.tolist())
            if slot in self._late
        ]
        if not late:
            return batch
        events, episodes = batch.raw_infos or ([], None)
        return batch._replace(infos=(events + late, episodes))

    def _recover(self, error: BaseException) -> list[Completed | Failed]:
        """Find out which slots an error has affected, and receive the others."""
        remains = drain_after_failure(self.pool, [*self._tasks, *self._overdue], error)
        outcomes = [outcome for batch in remains.batches for outcome in self._split(batch)]
        for slots, cause in remains.failures:
            outcomes += self._fail(slots, cause)
        return outcomes

    def _fail(self, slots: list[int], error: BaseException) -> list[Completed | Failed]:
        self._overdue.difference_update(slots)
        due = [slot for slot in slots if slot in self._tasks]
        return [Failed(task, lost, error) for task, lost in self._pop_tasks(due)]

    def _start_waiting(self) -> list[Completed | Failed]:
        outcomes: list[Completed | Failed] = []
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            try:
                self.start(task)
            except Exception as error:
                outcomes.append(Failed(task, task.slots.tolist(), error))
        return outcomes

    def _expire(self, now: float) -> list[Completed | Failed]:
        """Return the slots whose deadline has passed."""
        outcomes: list[Completed | Failed] = []
        for task in [each for each in self._waiting if each.deadlines]:
            is_over = np.array(task.deadlines) <= now
            if is_over.any():
                self._waiting.remove(task)
                if not is_over.all():
                    self._waiting.append(self._part(task, np.flatnonzero(~is_over)))
                slots = task.slots[is_over].tolist()
                outcomes.append(self._without_result(task, slots, Status.NOT_EXECUTED))
        expired = [slot for slot, deadline in self._deadlines.items() if deadline <= now]
        if expired:
            info: dict[str, str] = {}
            try:
                outcomes += self._cancel_in_pool(expired)
            except Exception as error:  # the slots are overdue nevertheless
                info = {NOT_CANCELLED: f"{type(error).__name__}: {error}"}
            for task, slots in self._pop_tasks([slot for slot in expired if slot in self._tasks]):
                self._overdue.update(slots)
                outcomes.append(self._without_result(task, slots, Status.TIMEOUT, info))
        return outcomes

    def _without_result(
        self, task: Task, slots: list[int], status: Status, info: Mapping[str, str] = _NO_INFO
    ) -> Completed | Failed:
        """Return slots without a new result: their newest observations and a status."""
        numbers = np.array(slots, np.int64)
        false = np.zeros(len(slots), np.bool_)
        events: list[Event] = [(row, {STATUS: status.value, **info}) for row in range(len(slots))]
        try:
            observations = self.pool.latest(numbers)
        except Exception as error:  # for example because a slot was never reset
            error.add_note(f"shoal: while reporting the status {status.value!r} of slots {slots}")
            return Failed(task, slots, error)
        rewards = np.zeros(len(slots))
        batch = Batch(numbers, observations, rewards, false, false.copy(), (events, None))
        return Completed(task, batch)
