"""The pool of a device.

A separate thread calls the device, so that the caller can wait with a timeout and cancel steps that
have not started.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout, VectorSpaces
from shoal._spaces.leaves import batch_of_leaves
from shoal._types import Event, Results
from shoal.errors import ReceiveTimeoutError, SlotNotResetError
from shoal.pools._base import (
    Batch,
    Pool,
    SlotChoice,
    WorkerState,
    check_open,
    checked_seeds,
    slot_numbers,
)
from shoal.pools._environments import Called
from shoal.remote._device import STATUS, Device, Feedback, Status
from shoal.remote._device_worker import DeviceWorker, Job

__all__ = ["DevicePool", "receive_step"]


class DevicePool:
    """A pool whose slots are those of a device.

    A slot whose episode has ended is reset by its next step, as in ``AutoresetMode.NEXT_STEP``.
    Each ``send`` and each ``reset`` is one call of the device, or two if a step resets slots.

    Args:
        device: The device. The pool owns and closes it.
        num_envs: Number of slots.
        first: The number of its slot 0 in the whole vector, for errors.
        total: Number of slots of the whole vector, by default ``num_envs``.
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
        self._finished = columns.finished()
        self._latest: list[Any] = [None] * num_envs  # the leaves of each slot's newest observation
        self._ledger = _native.SlotLedger(num_envs)  # protected by `DeviceWorker.changed`
        self._worker = DeviceWorker(
            device, self._layout, first, num_envs if total is None else total
        )
        self._closed = False
        self._is_closing = False

    @property
    def in_flight(self) -> int:
        """Number of slots that were sent or reset and not yet received."""
        return self._ledger.in_flight

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one seed for each of these slots."""
        chosen = self._check_idle(slots, "reset")
        self._start([Job(chosen, checked_seeds(seeds, len(chosen)), options, [])], chosen)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and queue their steps."""
        chosen = self.check_sendable(slots)
        self._intake.accept(actions, np.array(chosen, np.int64))
        each = list(iterate(batch_space(self.spaces.single_action, len(chosen)), actions))
        stepped = [row for row, slot in enumerate(chosen) if not self._finished[slot]]
        jobs = []
        if stepped:
            slots_to_step = [chosen[row] for row in stepped]
            jobs.append(Job(slots_to_step, None, None, [each[row] for row in stepped]))
        if finished := [slot for slot in chosen if self._finished[slot]]:
            jobs.append(Job(finished, [None] * len(finished), None, []))
        self._start(jobs, chosen)

    def check_sendable(self, slots: SlotChoice = None) -> list[int]:
        """Return the numbers of these slots; raise if they cannot be sent."""
        chosen = self._check_idle(slots, "send")
        self._check_reset(chosen)
        return chosen

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, first come, first served, and return those that are done."""
        self._check_open("recv")
        requested = None if slots is None else slot_numbers(slots, self.num_envs)
        done = self._worker.done
        with self._worker.changed:
            wanted = self._ledger.wanted(min_slots, max_slots, requested)
            self._wait(lambda: not self._ledger.missing(wanted), timeout)
            chosen = self._ledger.select(wanted).tolist()
            failed = [slot for slot in chosen if isinstance(done[slot], BaseException)]
            # If a slot has failed, the others stay to be received.
            results = [(slot, done.pop(slot)) for slot in failed or chosen]
            self._ledger.clear(np.array(failed or chosen, np.int64))
        first = results[0][1]
        if isinstance(first, BaseException):
            raise first
        return self._batch([(slot, each) for slot, each in results if isinstance(each, Feedback)])

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order."""
        self.begin_step(actions)
        return self.end_step()

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot, and start to step them."""
        self.send(actions)

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started; a failure drops the results of others."""
        self._check_open("step")
        return receive_step(self, self._ledger, timeout)

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots as a batch, without stepping."""
        self._check_open("latest")
        chosen = slot_numbers(slots, self.num_envs).tolist()
        self._check_reset(chosen)
        return self._stack([self._latest[slot] for slot in chosen])

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""
        done = self._worker.done
        with self._worker.changed:
            self._wait(lambda: len(done) == self._ledger.in_flight, None)
            for slot, result in done.items():
                if isinstance(result, Feedback):
                    self._update(slot, result)
            done.clear()
            self._ledger.clear_all()

    def cancel(self, slots: SlotChoice = None) -> list[int]:
        """Cancel steps and resets that have not started.

        A job may be cancelled in part. A device with a ``cancel`` method is asked to cancel the
        chosen slots that are running.

        Returns:
            The cancelled slots, which are no longer in flight.
        """
        chosen = set(slot_numbers(slots, self.num_envs).tolist())
        with self._worker.changed:
            cancelled = self._worker.withdraw(chosen)
            self._ledger.clear(np.array(cancelled, np.int64))
            idle = self._worker.done.keys() | self._worker.waiting()
            running = sorted(chosen.intersection(self._ledger.slots_in_flight().tolist()) - idle)
        if running and hasattr(self.device, "cancel"):
            self.device.cancel(running)
        return cancelled

    def expected_duration(self, slots: npt.NDArray[np.int64], actions: Any) -> float:
        """Return the expected seconds of a step of these slots; 0 if the device does not say.

        Raises:
            ValueError: The device returns a value that is not finite.
        """
        device: Any = self.device
        if not hasattr(device, "expected_duration"):
            return 0.0
        each = list(iterate(batch_space(self.spaces.single_action, len(slots)), actions))
        seconds = float(device.expected_duration(slots.tolist(), each))
        if not math.isfinite(seconds):
            raise ValueError(f"expected_duration must be a finite number, got {seconds}")
        return seconds

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Render these slots, or access an attribute of the device that all of them share."""
        self._check_open("call")
        chosen: list[int] = slot_numbers(slots, self.num_envs).tolist()
        device: Any = self.device
        if what == "render":
            return list(device.render(chosen))
        env = _DeviceAsEnv(device)
        if not isinstance(what, str):
            result = what(env, *args, **kwargs)
        else:
            result = getattr(env if hasattr(env, what) else device, what)
            result = result(*args, **kwargs) if callable(result) else result
        return [result] * len(chosen)

    def worker_states(self) -> list[WorkerState]:
        """Return the state of the thread that calls the device."""
        return [WorkerState("device", range(self.num_envs), thread=self._worker.thread_id)]

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:  # noqa: ARG002
        """Wait for the call in progress, then close the device; a second call does nothing."""
        if self._start_closing():
            self._worker.close_device(timeout)

    def abandon(self) -> None:
        """Close the device of a vector that is garbage collected without being closed."""
        if self._start_closing():
            threading.Thread(target=self._worker.close_device, daemon=True).start()

    def stop(self) -> None:
        """Start no more calls of the device, because the pool is about to be closed."""
        self._closed = True
        self._worker.stop()

    def _start_closing(self) -> bool:
        """Stop; return whether the pool is not being closed already."""
        self.stop()
        with self._worker.changed:
            is_first, self._is_closing = not self._is_closing, True
        return is_first

    # Helpers

    def _start(self, jobs: list[Job], order: list[int]) -> None:
        with self._worker.changed:
            self._ledger.mark_in_flight(np.array(order, np.int64))
            self._worker.submit(jobs)

    def _wait(self, is_done: Callable[[], bool], timeout: float | None) -> None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            self._ledger.mark_done(np.fromiter(self._worker.done, np.int64))
            if is_done():
                return
            # In slices: on some systems Ctrl-C does not interrupt a wait on a condition.
            interval = 0.1 if deadline is None else min(0.1, deadline - time.monotonic())
            if interval < 0:
                raise ReceiveTimeoutError(
                    f"{self._ledger.done} of {self._ledger.in_flight} slots were done within "
                    f"{timeout} seconds; those in flight can still be received"
                )
            self._worker.changed.wait(interval)

    def _batch(self, results: list[tuple[int, Feedback]]) -> Batch:
        slots = np.array([slot for slot, _ in results], np.int64)
        events: list[Event] = []
        for row, (slot, feedback) in enumerate(results):
            info = dict(feedback.info or {})
            if feedback.status is not Status.OK:
                info[STATUS] = feedback.status.value
            if info:
                events.append((row, info))
            self._update(slot, feedback)
        observations = self._stack([feedback.observation for _, feedback in results])
        return Batch(
            slots,
            observations,
            np.array([feedback.reward for _, feedback in results], np.float64),
            np.array([feedback.terminated for _, feedback in results], np.bool_),
            np.array([feedback.truncated for _, feedback in results], np.bool_),
            (events, None) if events else None,
        )

    def _update(self, slot: int, feedback: Feedback) -> None:
        """Update the state of a slot."""
        if feedback.status not in (Status.NOT_EXECUTED, Status.TIMEOUT):
            self._finished[slot] = feedback.terminated or feedback.truncated
        self._latest[slot] = feedback.observation

    def _stack(self, observations: list[Any]) -> Any:
        """Make a batch of observations that are given as leaves."""
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

    def _check_idle(self, slots: SlotChoice, method: str) -> list[int]:
        self._check_open(method)
        chosen = slot_numbers(slots, self.num_envs)
        self._ledger.check_idle(chosen)
        numbers: list[int] = chosen.tolist()
        return numbers

    def _check_reset(self, slots: list[int]) -> None:
        for slot in slots:
            if self._latest[slot] is None:
                number = self.first + slot
                raise SlotNotResetError(f"slot {number} has no observation yet: reset it first")

    def _check_open(self, method: str) -> None:
        check_open(self._closed, method)


def receive_step(pool: Pool, ledger: _native.SlotLedger, timeout: float | None) -> Results:
    """Receive a step of all slots in slot order.

    If a slot fails, the results of all slots are dropped, so that the next step can start. After a
    timeout the step can be received again.
    """
    if pool.in_flight != pool.num_envs:
        ledger.check_round()
    try:
        return pool.recv(timeout=timeout, slots=range(pool.num_envs))[1:]
    except ReceiveTimeoutError:
        raise
    except Exception:
        pool.drop()
        raise


class _DeviceAsEnv:
    """A device with the attribute methods of an environment."""

    def __init__(self, device: Any) -> None:
        self._device = device

    def get_wrapper_attr(self, name: str) -> Any:
        return getattr(self._device, name)

    def has_wrapper_attr(self, name: str) -> bool:
        return hasattr(self._device, name)

    def set_wrapper_attr(self, name: str, value: Any) -> None:
        setattr(self._device, name, value)
