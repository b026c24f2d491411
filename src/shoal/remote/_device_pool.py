"""A device as a pool.

Calls of a device last as long as they last: a thread makes them, one after the other, while the
caller can look at its deadline, or take back what has not begun.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout, Leaf, VectorSpaces
from shoal._spaces.leaves import batch_of_leaves, value_parts
from shoal._types import Event, Results
from shoal.errors import (
    ObservationError,
    ReceiveTimeoutError,
    SlotNotResetError,
    StepResultError,
)
from shoal.pools._base import Batch, Pool, SlotChoice, WorkerState, checked_seeds, slot_numbers
from shoal.pools._environments import Called, naming_slot
from shoal.pools._recv_condition import Wanted
from shoal.remote._device import STATUS, Device, Feedback, Status

__all__ = ["DevicePool", "receive_step"]

Array = npt.NDArray[Any]


@dataclass
class _Job:
    """Slots that the device is to reset or step."""

    slots: list[int]
    seeds: list[int | None] | None
    options: dict[str, Any] | None
    actions: list[Any]

    def without(self, slots: Collection[int]) -> list[int]:
        """Take these slots out of it, and say which of them it had."""
        taken = [slot for slot in self.slots if slot in slots]
        if taken:
            kept = [place for place, slot in enumerate(self.slots) if slot not in slots]
            self.slots = [self.slots[place] for place in kept]
            if self.seeds is None:
                self.actions = [self.actions[place] for place in kept]
            else:
                self.seeds = [self.seeds[place] for place in kept]
        return taken


class DevicePool:
    """The contract over a device: a thread calls it, and rows wait until they are received.

    A slot whose episode has ended is reset by its next step, as in ``AutoresetMode.NEXT_STEP``.
    Each ``send`` and each ``reset`` is one call of the device, two where slots are reset by a step.

    Args:
        device: What is called. The pool owns it, and closes it.
        num_envs: How many slots it has.
        first: The number of its slot 0 in the vector that the pool is a part of, for errors.
        total: How many slots that vector has; as many as the pool if it is left out.
    """

    envs = None
    copy = True
    restarts = False
    autoreset_mode = AutoresetMode.NEXT_STEP

    def __init__(
        self, device: Device, num_envs: int, *, first: int = 0, total: int | None = None
    ) -> None:
        self.device = device
        self.num_envs = num_envs
        self.first = first
        self._total = num_envs if total is None else total
        self.metadata: dict[str, Any] = dict(getattr(device, "metadata", None) or {})
        self.render_mode: str | None = getattr(device, "render_mode", None)
        single, action = device.single_observation_space, device.single_action_space
        self.spaces = VectorSpaces(
            single, batch_space(single, num_envs), action, batch_space(action, num_envs)
        )
        self._layout = Layout.of(single)
        actions = Layout.of(action, ordered_like=self.spaces.action)
        columns = VectorColumns(self._layout, actions, num_envs, 0)
        self._intake = _native.ActionIntake(
            actions.tree, columns.actions(), columns.state(), _native.Autoreset.NEXT_STEP
        )
        self._ended = columns.finished()
        self._latest: list[Any] = [None] * num_envs  # the leaves of each slot's newest observation
        self._flying: dict[int, None] = {}  # in the order in which they were sent
        self._jobs: deque[_Job] = deque()
        self._done: dict[int, Feedback | BaseException] = {}  # in the order in which they came
        self._news = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._is_leaving = False

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""
        return len(self._flying)

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""
        chosen = self._idle(slots, "reset")
        self._begin([_Job(chosen, checked_seeds(seeds, len(chosen)), options, [])])

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and queue their steps."""
        chosen = self.check_sendable(slots)
        self._intake.accept(actions, np.array(chosen, np.int64))
        each = list(iterate(batch_space(self.spaces.single_action, len(chosen)), actions))
        going_on = [place for place, slot in enumerate(chosen) if not self._ended[slot]]
        jobs = []
        if going_on:
            stepped = [chosen[place] for place in going_on]
            jobs.append(_Job(stepped, None, None, [each[place] for place in going_on]))
        if ended := [slot for slot in chosen if self._ended[slot]]:
            jobs.append(_Job(ended, [None] * len(ended), None, []))
        self._begin(jobs, chosen)

    def check_sendable(self, slots: SlotChoice = None) -> list[int]:
        """The numbers of these slots; raises where ``send`` would, whatever the actions are."""
        chosen = self._idle(slots, "send")
        self._check_begun(chosen)
        return chosen

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, first come, first served, and return what is done."""
        self._check_open("recv")
        asked = None if slots is None else slot_numbers(slots, self.num_envs).tolist()
        with self._news:
            wanted = Wanted.of(self._flying, min_slots, max_slots, asked)
            self._wait(lambda: wanted.has_come(self._done, self._flying), timeout)
            chosen = wanted.among(self._done, self._flying)
            failed = [slot for slot in chosen if isinstance(self._done[slot], BaseException)]
            # Those that have not failed stay to be received.
            found = [(slot, self._done.pop(slot)) for slot in failed or chosen]
            for slot, _ in found:
                del self._flying[slot]
        first = found[0][1]
        if isinstance(first, BaseException):
            raise first
        return self._batch([(slot, what) for slot, what in found if isinstance(what, Feedback)])

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        self.begin_step(actions)
        return self.end_step()

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot, and begin to step them."""
        self.send(actions)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun; a failure costs the rows of all slots."""
        self._check_open("step")
        return receive_step(self, timeout)

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""
        self._check_open("latest")
        chosen = slot_numbers(slots, self.num_envs).tolist()
        self._check_begun(chosen)
        return self._batched([self._latest[slot] for slot in chosen])

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""
        with self._news:
            self._wait(lambda: len(self._done) == len(self._flying), None)
            for slot, found in self._done.items():
                if isinstance(found, Feedback):
                    self._note(slot, found)
            self._done.clear()
            self._flying.clear()

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Take back what has not begun, and say which slots these were; they are not received.

        Of slots that were sent together, some may be: the request is made without them. A device
        that has ``cancel(slots)`` is told of those that have begun.
        """
        chosen = set(slot_numbers(slots, self.num_envs).tolist())
        taken_back: list[int] = []
        with self._news:
            for job in self._jobs:
                taken_back += job.without(chosen)
            self._jobs = deque(job for job in self._jobs if job.slots)
            for slot in taken_back:
                del self._flying[slot]
            waiting = {slot for job in self._jobs for slot in job.slots}
            running = sorted(chosen & self._flying.keys() - self._done.keys() - waiting)
        if running and hasattr(self.device, "cancel"):
            self.device.cancel(running)
        return taken_back

    def expected_duration(self, slots: npt.NDArray[np.int64], actions: Any) -> float:
        """Seconds that a step of these slots will probably take; 0 where the device does not say.

        Raises:
            ValueError: The device says something else.
        """
        device: Any = self.device
        if not hasattr(device, "expected_duration"):
            return 0.0
        each = list(iterate(batch_space(self.spaces.single_action, len(slots)), actions))
        seconds = float(device.expected_duration(slots.tolist(), each))
        if not math.isfinite(seconds):
            raise ValueError(f"expected_duration must be a number of seconds, got {seconds}")
        return seconds

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach the device: it renders these slots, and has one attribute for all of them."""
        self._check_open("call")
        chosen: list[int] = slot_numbers(slots, self.num_envs).tolist()
        device: Any = self.device
        if what == "render":
            return list(device.render(chosen))
        reached = _Reached(device)
        if not isinstance(what, str):
            found = what(reached, *args, **kwargs)
        else:
            found = getattr(reached if hasattr(reached, what) else device, what)
            found = found(*args, **kwargs) if callable(found) else found
        return [found] * len(chosen)

    def worker_states(self) -> list[WorkerState]:
        """The device, which a thread of the pool's calls."""
        thread = self._thread
        number = None if thread is None else thread.native_id
        return [WorkerState("device", range(self.num_envs), thread=number)]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:  # noqa: ARG002
        """Let a call that is under way end, then close the device; a second call does nothing."""
        if not self._takes_leave():
            return
        if self._thread is not None:
            self._thread.join(timeout)
        self.device.close()

    def abandon(self) -> None:
        """Have the thread close the device, for a vector that is garbage and was not closed."""
        if self._takes_leave():
            thread = self._thread
            threading.Thread(target=_close_after, args=(thread, self.device), daemon=True).start()

    def stop(self) -> None:
        """Begin nothing more, now that the pool is about to be closed."""
        with self._news:
            self._closed = True
            self._jobs.clear()
            self._news.notify_all()

    def _takes_leave(self) -> bool:
        """Stop; whether nobody has begun to close the device before."""
        self.stop()
        with self._news:
            is_first, self._is_leaving = not self._is_leaving, True
        return is_first

    # The thread

    def _work(self) -> None:
        while not self._closed:
            self._do_next()  # a call of its own: nothing is kept of a job while there is no other

    def _do_next(self) -> None:
        with self._news:
            self._news.wait_for(lambda: self._jobs or self._closed)
            if self._closed:
                return
            job = self._jobs.popleft()
        found = self._answers(job)
        with self._news:
            self._done.update(zip(job.slots, found, strict=True))
            self._news.notify_all()

    def _answers(self, job: _Job) -> Sequence[Feedback | BaseException]:
        try:
            if job.seeds is None:
                found = list(self.device.step_slots(job.slots, job.actions))
            else:
                found = list(self.device.reset_slots(job.slots, job.seeds, job.options))
            if len(found) != len(job.slots):
                raise StepResultError(
                    f"the device answered for {len(found)} slots, asked were {len(job.slots)}"
                )
        except ReceiveTimeoutError as error:
            # From ``recv`` it would say that the slots are still in flight, and they are not.
            given_up = TimeoutError(str(error))
            given_up.__cause__ = error
            return self._failed(job, given_up)
        except BaseException as error:
            return self._failed(job, error)
        return [self._checked(slot, each) for slot, each in zip(job.slots, found, strict=True)]

    def _failed(self, job: _Job, error: BaseException) -> list[BaseException]:
        numbers = [self.first + slot for slot in job.slots]
        error.add_note(f"shoal: in slots {numbers} of {self._total}")
        return [error] * len(numbers)

    def _checked(self, slot: int, feedback: Any) -> Feedback | BaseException:
        """What a device has answered for a slot, copied: the device may use its arrays again."""
        doing = "reading what the device has answered"
        try:
            with naming_slot(self.first + slot, self._total, doing):
                if not isinstance(feedback, Feedback):
                    raise StepResultError(f"expected a Feedback, got {feedback!r}")
                leaves = _copied_leaves(self._layout, feedback.observation)
                return feedback._replace(observation=leaves, reward=float(feedback.reward))
        except Exception as error:
            return error

    # Parts

    def _begin(self, jobs: list[_Job], order: list[int] | None = None) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="shoal device", daemon=True)
            self._thread.start()
        with self._news:
            slots = [slot for job in jobs for slot in job.slots] if order is None else order
            self._flying.update(dict.fromkeys(slots))
            self._jobs.extend(jobs)
            self._news.notify_all()

    def _wait(self, is_done: Callable[[], bool], timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while not is_done():
            # In slices, since a wait on a condition does not hear of Ctrl-C on every system.
            left = 0.1 if deadline is None else min(0.1, deadline - time.monotonic())
            if left < 0:
                raise ReceiveTimeoutError(
                    f"{len(self._done)} of {len(self._flying)} slots were done within {timeout} "
                    "seconds; those in flight can still be received"
                )
            self._news.wait(left)

    def _batch(self, found: list[tuple[int, Feedback]]) -> Batch:
        slots = np.array([slot for slot, _ in found], np.int64)
        events: list[Event] = []
        for row, (slot, feedback) in enumerate(found):
            info = dict(feedback.info or {})
            if feedback.status is not Status.OK:
                info[STATUS] = feedback.status.value
            if info:
                events.append((row, info))
            self._note(slot, feedback)
        observations = self._batched([feedback.observation for _, feedback in found])
        return Batch(
            slots,
            observations,
            np.array([feedback.reward for _, feedback in found], np.float64),
            np.array([feedback.terminated for _, feedback in found], np.bool_),
            np.array([feedback.truncated for _, feedback in found], np.bool_),
            (events, None) if events else None,
        )

    def _note(self, slot: int, feedback: Feedback) -> None:
        """What a slot has come to."""
        if feedback.status not in (Status.NOT_EXECUTED, Status.TIMEOUT):
            self._ended[slot] = feedback.terminated or feedback.truncated
        self._latest[slot] = feedback.observation

    def _batched(self, observations: list[Any]) -> Any:
        """A batch of the leaves of one observation each."""
        leaves: list[list[Any]] = [[] for _ in self._layout.leaves]
        objects: list[list[Any]] = [[] for _ in self._layout.objects]
        for arrays, others in observations:
            for column, array in zip(leaves, arrays, strict=True):
                column.append(array)
            for items, item in zip(objects, others, strict=True):
                items.append(item)
        columns = [
            np.stack(column) if column else np.empty((0, *leaf.shape), leaf.dtype)
            for leaf, column in zip(self._layout.leaves, leaves, strict=True)
        ]
        return batch_of_leaves(self._layout, columns, objects)

    def _idle(self, slots: SlotChoice, doing: str) -> list[int]:
        self._check_open(doing)
        chosen: list[int] = slot_numbers(slots, self.num_envs).tolist()
        for slot in chosen:
            if slot in self._flying:
                raise AlreadyPendingCallError(
                    f"slot {slot} is in flight already: receive it before sending it again", "recv"
                )
        return chosen

    def _check_begun(self, slots: list[int]) -> None:
        for slot in slots:
            if self._latest[slot] is None:
                number = self.first + slot
                raise SlotNotResetError(f"slot {number} was never reset, and shows nothing")

    def _check_open(self, doing: str) -> None:
        if self._closed:
            raise ClosedEnvironmentError(f"{doing}: the vector environment is closed")


def receive_step(pool: Pool, timeout: float | None) -> Results:
    """Receive a step of all slots, in their order.

    A failure costs the rows of all of them, so that the next step can begin; after a timeout they
    can be asked for again.
    """
    if pool.in_flight != pool.num_envs:
        raise NoAsyncCallError("no step of all slots is in flight", "step")
    try:
        return pool.recv(timeout=timeout, slots=range(pool.num_envs))[1:]
    except ReceiveTimeoutError:
        raise
    except Exception:
        pool.drop()
        raise


def _close_after(thread: threading.Thread | None, device: Device) -> None:
    if thread is not None:
        thread.join()
    device.close()


class _Reached:
    """A device in the place of an environment, for functions that reach one."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def get_wrapper_attr(self, name: str) -> Any:
        return getattr(self._device, name)

    def has_wrapper_attr(self, name: str) -> bool:
        return hasattr(self._device, name)

    def set_wrapper_attr(self, name: str, value: Any) -> None:
        setattr(self._device, name, value)


def _copied_leaves(layout: Layout, observation: Any) -> tuple[list[Array], list[Any]]:
    """The leaves of one observation, checked and copied."""
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
