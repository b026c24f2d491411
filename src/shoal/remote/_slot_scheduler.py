"""What a session has its pool do: requests of several at a time, deadlines, and what comes late."""

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

__all__ = ["LATE", "Answer", "Failed", "SlotScheduler", "Task"]

LATE = "late"
"""The info by which a slot tells, with its next answer, how a step ended that came too late."""

NOT_CANCELLED = "not cancelled"
"""The info of a slot that has missed its deadline, with what its device raised when cancelled."""

Slots = npt.NDArray[np.int64]

_NONE: Mapping[str, str] = {}


@dataclass
class Task:
    """Slots to be stepped or reset, as one request has asked for it.

    ``deadlines`` are points in time, one for each slot, or none.
    """

    number: int
    slots: Slots
    actions: Any = None
    seeds: list[int | None] | None = None
    options: dict[str, Any] | None = None
    deadlines: list[float] = field(default_factory=list)
    begun: float = field(default_factory=time.perf_counter)


@dataclass(frozen=True)
class Answer:
    """Rows for a request; there may be more to come."""

    task: Task
    batch: Batch


@dataclass(frozen=True)
class Failed:
    """What was raised instead of rows, for these slots of a request."""

    task: Task
    slots: list[int]
    error: BaseException


class SlotScheduler:
    """A pool at work on tasks.

    A slot that has missed its deadline is answered, and goes on: what is asked of it next waits
    until it has ended, and is told how it ended.
    """

    def __init__(self, pool: Pool) -> None:
        self.pool = pool
        self._layout = Layout.of(pool.spaces.single_observation)
        self._one_slot = batch_space(pool.spaces.single_observation, 1)
        self._actions = Layout.of(pool.spaces.single_action, ordered_like=pool.spaces.action)
        self._tasks: dict[int, Task] = {}  # by slot, of those that an answer is due for
        self._deadlines: dict[int, float] = {}  # of those of them that have one
        self._overdue: set[int] = set()  # slots at work that were answered already
        self._waiting: list[Task] = []  # for slots that are overdue
        self._late: dict[int, dict[str, Any]] = {}

    @property
    def is_busy(self) -> bool:
        """Whether there is something to poll for."""
        return bool(self._tasks or self._overdue or self._waiting)

    @property
    def is_even(self) -> bool:
        """Whether no slot does, or has to tell, anything that another one does not."""
        return not (self._tasks or self._overdue or self._waiting or self._late)

    @property
    def count(self) -> int:
        """How many requests have not been answered in full."""
        return len({id(task) for task in self._tasks.values()}) + len(self._waiting)

    def begin(self, task: Task) -> None:
        """Begin a task; slots that have not ended what they do begin when they have.

        Raises what the pool raises; then nothing has begun.
        """
        waiting = {slot for each in self._waiting for slot in each.slots.tolist()}
        held_up = np.isin(task.slots, list(self._overdue | waiting))
        if not held_up.any():
            self._start(task)
            return
        if not held_up.all():
            self._start(self._part(task, np.flatnonzero(~held_up)))
        self._waiting.append(self._part(task, np.flatnonzero(held_up)))

    def _part(self, task: Task, places: Slots) -> Task:
        """Some slots of a task."""
        rows = places.tolist()
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

    def poll(self, timeout: float) -> Iterable[Answer | Failed]:
        """What is done, or was waited for too long; it waits so many seconds for that."""
        found: list[Answer | Failed] = []
        if self._tasks or self._overdue:
            found += self._received(min(timeout, self._until_deadline()))
        if self._waiting:
            found += self._start_waiting()
        found += self._missed(time.monotonic())
        return found

    def cancel(self, slots: Iterable[int]) -> list[Answer | Failed]:
        """Take back what has not begun, and answer that it was not executed."""
        chosen = set(slots)
        found: list[Answer | Failed] = []
        for task in [task for task in self._waiting if chosen.issuperset(task.slots.tolist())]:
            self._waiting.remove(task)
            found.append(self._excuse(task, task.slots.tolist(), Status.NOT_EXECUTED))
        found += self._taken_back([slot for slot in self._tasks if slot in chosen])
        return found

    def _taken_back(self, slots: list[int]) -> list[Answer | Failed]:
        cancel = getattr(self.pool, "cancel", None)
        if cancel is None or not slots:
            return []
        answers: list[Answer | Failed] = []
        for task, taken in self._by_task(cancel(slots) or ()):
            answers.append(self._excuse(task, taken, Status.NOT_EXECUTED))
        return answers

    def _by_task(self, slots: Iterable[int]) -> list[tuple[Task, list[int]]]:
        """These slots with the tasks that they belong to, which they leave."""
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

    def _received(self, timeout: float) -> list[Answer | Failed]:
        try:
            return self._sorted(self.pool.recv(min_slots=1, timeout=timeout))
        except ReceiveTimeoutError:
            return []
        except Exception as error:
            return self._sort_out(error)

    def _sorted(self, batch: Batch) -> list[Answer | Failed]:
        """The rows of a batch by the tasks that they belong to; those that are late are noted."""
        slots: list[int] = batch.slots.tolist()
        for row, slot in enumerate(slots):
            if slot in self._overdue:
                self._overdue.discard(slot)
                self._late[slot] = {
                    "observation": self._one(batch, row),
                    "reward": float(batch.rewards[row]),
                    "terminated": bool(batch.terminated[row]),
                    "truncated": bool(batch.truncated[row]),
                }
        due = [slot for slot in slots if slot in self._tasks]
        answers: list[Answer | Failed] = []
        for task, belonging in self._by_task(due):
            part = batch if len(belonging) == len(slots) else self._rows(batch, belonging)
            answers.append(Answer(task, self._with_late(part)))
        return answers

    def _rows(self, batch: Batch, slots: list[int]) -> Batch:
        places = {slot: row for row, slot in enumerate(batch.slots.tolist())}
        return batch_rows(self._layout, batch, [places[slot] for slot in slots])

    def _one(self, batch: Batch, row: int) -> Any:
        """The observation of one row."""
        one = batch_rows(self._layout, batch, [row]).observations
        return next(iter(iterate(self._one_slot, one)))

    def _with_late(self, batch: Batch) -> Batch:
        if not self._late:
            return batch
        events: list[Event] = [
            (row, {LATE: self._late.pop(slot)})
            for row, slot in enumerate(batch.slots.tolist())
            if slot in self._late
        ]
        if not events:
            return batch
        told, episodes = batch.raw_infos or ([], None)
        return batch._replace(infos=(told + events, episodes))

    def _sort_out(self, error: BaseException) -> list[Answer | Failed]:
        """After a failure: which slots it has cost, and what there is of the others."""
        remains = drain_after_failure(self.pool, [*self._tasks, *self._overdue], error)
        found = [answer for batch in remains.batches for answer in self._sorted(batch)]
        for slots, cause in remains.failures:
            found += self._failures(slots, cause)
        return found

    def _failures(self, slots: list[int], error: BaseException) -> list[Answer | Failed]:
        self._overdue.difference_update(slots)
        due = [slot for slot in slots if slot in self._tasks]
        return [Failed(task, lost, error) for task, lost in self._by_task(due)]

    def _start_waiting(self) -> list[Answer | Failed]:
        found: list[Answer | Failed] = []
        waiting, self._waiting = self._waiting, []
        for task in waiting:
            try:
                self.begin(task)
            except Exception as error:
                found.append(Failed(task, task.slots.tolist(), error))
        return found

    def _missed(self, now: float) -> list[Answer | Failed]:
        """Answers for slots whose deadline has passed."""
        found: list[Answer | Failed] = []
        for task in [each for each in self._waiting if each.deadlines]:
            is_over = np.array(task.deadlines) <= now
            if is_over.any():
                self._waiting.remove(task)
                if not is_over.all():
                    self._waiting.append(self._part(task, np.flatnonzero(~is_over)))
                found.append(self._excuse(task, task.slots[is_over].tolist(), Status.NOT_EXECUTED))
        passed = [slot for slot, deadline in self._deadlines.items() if deadline <= now]
        if passed:
            problem: dict[str, str] = {}
            try:
                found += self._taken_back(passed)
            except Exception as error:  # the deadline has passed all the same
                problem = {NOT_CANCELLED: f"{type(error).__name__}: {error}"}
            for task, slots in self._by_task([slot for slot in passed if slot in self._tasks]):
                self._overdue.update(slots)
                found.append(self._excuse(task, slots, Status.TIMEOUT, problem))
        return found

    def _excuse(
        self, task: Task, slots: list[int], status: Status, problem: Mapping[str, str] = _NONE
    ) -> Answer | Failed:
        """An answer for slots that have nothing new to show."""
        numbers = np.array(slots, np.int64)
        nothing = np.zeros(len(slots), np.bool_)
        info = {STATUS: status.value, **problem}
        events: list[Event] = [(row, dict(info)) for row in range(len(slots))]
        try:
            observations = self.pool.latest(numbers)
        except Exception as error:  # there is nothing old either
            error.add_note(f"shoal: asked for since the status of slots {slots} is {status.value}")
            return Failed(task, slots, error)
        rewards = np.zeros(len(slots))
        batch = Batch(numbers, observations, rewards, nothing, nothing.copy(), (events, None))
        return Answer(task, batch)
