"""The thread that calls a device."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces import Layout, Leaf
from shoal._spaces.leaves import value_parts
from shoal.errors import ObservationError, ReceiveTimeoutError, StepResultError
from shoal.pools._environments import naming_slot
from shoal.remote._device import Device, Feedback

__all__ = ["DeviceWorker", "Job"]

Array = npt.NDArray[Any]


@dataclass
class Job:
    """Slots to reset or step with one call of the device; ``seeds`` is None for a step."""

    slots: list[int]
    seeds: list[int | None] | None
    options: dict[str, Any] | None
    actions: list[Any]

    def remove(self, slots: Collection[int]) -> list[int]:
        """Remove these slots, and return those that were part of the job."""
        removed = [slot for slot in self.slots if slot in slots]
        if removed:
            kept = [row for row, slot in enumerate(self.slots) if slot not in slots]
            self.slots = [self.slots[row] for row in kept]
            if self.seeds is None:
                self.actions = [self.actions[row] for row in kept]
            else:
                self.seeds = [self.seeds[row] for row in kept]
        return removed


class DeviceWorker:
    """A thread that calls a device for one job after the other.

    Args:
        device: The device.
        layout: The layout of one slot's observation.
        first: The number of the device's slot 0 in the whole vector, for errors.
        total: Number of slots of the whole vector, for errors.
    """

    def __init__(self, device: Device, layout: Layout, first: int, total: int) -> None:
        self._device = device
        self._layout = layout
        self._first = first
        self._total = total
        self._jobs: deque[Job] = deque()
        self._thread: threading.Thread | None = None
        self._is_stopped = False
        self.changed = threading.Condition()
        """Protects the jobs and ``done``; notified when either changes."""
        self.done: dict[int, Feedback | BaseException] = {}
        """The result of each slot that is done and not yet received, in order of completion."""

    @property
    def thread_id(self) -> int | None:
        """The native id of the thread; None before the first job."""
        return None if self._thread is None else self._thread.native_id

    def submit(self, jobs: list[Job]) -> None:
        """Add jobs to the queue."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="shoal device", daemon=True)
            self._thread.start()
        with self.changed:
            self._jobs.extend(jobs)
            self.changed.notify_all()

    def withdraw(self, slots: Collection[int]) -> list[int]:
        """Remove these slots from jobs that have not started; return the removed slots."""
        removed: list[int] = []
        with self.changed:
            for job in self._jobs:
                removed += job.remove(slots)
            self._jobs = deque(job for job in self._jobs if job.slots)
        return removed

    def waiting(self) -> set[int]:
        """Return the slots of jobs that have not started."""
        with self.changed:
            return {slot for job in self._jobs for slot in job.slots}

    def stop(self) -> None:
        """Start no more jobs."""
        with self.changed:
            self._is_stopped = True
            self._jobs.clear()
            self.changed.notify_all()

    def close_device(self, timeout: float | None = None) -> None:
        """Wait for the job in progress, then close the device."""
        if self._thread is not None:
            self._thread.join(timeout)
        self._device.close()

    # The thread

    def _run(self) -> None:
        while not self._is_stopped:
            self._run_next()  # a separate function, so that no reference to a finished job remains

    def _run_next(self) -> None:
        with self.changed:
            self.changed.wait_for(lambda: self._jobs or self._is_stopped)
            if self._is_stopped:
                return
            job = self._jobs.popleft()
        results = self._call(job)
        with self.changed:
            self.done.update(zip(job.slots, results, strict=True))
            self.changed.notify_all()

    def _call(self, job: Job) -> Sequence[Feedback | BaseException]:
        try:
            if job.seeds is None:
                feedback = list(self._device.step_slots(job.slots, job.actions))
            else:
                feedback = list(self._device.reset_slots(job.slots, job.seeds, job.options))
            if len(feedback) != len(job.slots):
                raise StepResultError(
                    f"the device returned {len(feedback)} feedbacks for {len(job.slots)} slots"
                )
        except ReceiveTimeoutError as error:
            # Raised by ``recv``, it would mean that the slots are still in flight.
            timeout = TimeoutError(str(error))
            timeout.__cause__ = error
            return self._failed(job, timeout)
        except BaseException as error:
            return self._failed(job, error)
        return [self._checked(slot, each) for slot, each in zip(job.slots, feedback, strict=True)]

    def _failed(self, job: Job, error: BaseException) -> list[BaseException]:
        numbers = [self._first + slot for slot in job.slots]
        error.add_note(f"shoal: in slots {numbers} of {self._total}")
        return [error] * len(numbers)

    def _checked(self, slot: int, feedback: Any) -> Feedback | BaseException:
        """Check the feedback of a slot and copy it: the device may reuse its arrays."""
        try:
            with naming_slot(self._first + slot, self._total, "reading the feedback of the device"):
                if not isinstance(feedback, Feedback):
                    raise StepResultError(f"expected a Feedback, got {feedback!r}")
                leaves = _copied_leaves(self._layout, feedback.observation)
                return feedback._replace(observation=leaves, reward=float(feedback.reward))
        except Exception as error:
            return error


def _copied_leaves(layout: Layout, observation: Any) -> tuple[list[Array], list[Any]]:
    """Check and copy the leaves of an observation."""
    arrays: list[Array] = []
    objects: list[Any] = []
    for part, value in value_parts(layout, observation, ObservationError, "observation"):
        if isinstance(part, Leaf):
            arrays.append(_copied_leaf(part, value))
        else:
            objects.append(deepcopy(value))
    return arrays, objects


def _copied_leaf(leaf: Leaf, value: Any) -> Array:
    try:
        array = np.array(value, leaf.dtype)
    except (TypeError, ValueError) as error:
        raise ObservationError(
            f"observation{leaf.path}: {error}, expected {leaf.description}"
        ) from error
    if array.shape != leaf.shape:
        raise ObservationError(
            f"observation{leaf.path}: got shape {array.shape}, expected {leaf.shape} "
            f"({leaf.description})"
        )
    return array
