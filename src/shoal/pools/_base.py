"""The contract between pools and frontends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from gymnasium import Env
from gymnasium.error import ClosedEnvironmentError
from gymnasium.vector import AutoresetMode

from shoal._spaces import VectorSpaces
from shoal._types import RawInfos, Results, as_events
from shoal.pools._environments import Called

__all__ = [
    "Batch",
    "Pool",
    "SlotChoice",
    "WorkerState",
    "caller_state",
    "check_open",
    "checked_seeds",
    "slot_numbers",
]

SlotChoice = Sequence[int] | npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_] | None


class Batch(NamedTuple):
    """What ``recv`` returns: row k of every column belongs to ``slots[k]``.

    A pool returns raw ``infos``: None if no slot has any, else a list of (row, info) and the
    episodes that ended, as (mask, returns, lengths, seconds) or None; or, if the infos of all slots
    have the same keys, :class:`shoal._types.ColumnInfos`. A frontend converts them to the form of
    its interface.
    """

    slots: npt.NDArray[np.int64]
    observations: Any
    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    infos: Any

    @property
    def raw_infos(self) -> RawInfos | None:
        """``infos`` as a list of events and the episodes that ended."""
        return as_events(self.infos, len(self.slots))


class WorkerState(NamedTuple):
    """The worker, or the caller, that currently drives a share of the slots."""

    name: str
    slots: range
    place: str = ""
    """The host it runs on; empty for this machine."""
    process: int | None = None
    """The process id; None for a thread of this process."""
    thread: int | None = None
    """The system's id of a thread of this process; None for the thread that calls ``step``."""
    restarts: int = 0
    """How often it was lost and replaced."""


class Pool(Protocol):
    """Many environments, stepped as one.

    A slot has at most one reset or step in flight, which was queued and not yet received.
    Arguments named ``slots`` accept None for all slots, a sequence of numbers, or a boolean mask.
    ``copy`` is whether batches are new arrays, or views that later batches overwrite. ``restarts``
    is whether a slot that loses its environment gets a new one: the slot is then reset and reports
    a truncation, with ``crashed`` in its info.
    """

    num_envs: int
    spaces: VectorSpaces
    autoreset_mode: AutoresetMode
    metadata: dict[str, Any]
    render_mode: str | None
    copy: bool
    restarts: bool

    @property
    def envs(self) -> list[Env[Any, Any]] | None:
        """The environments if they are objects of this process, else None."""

    @property
    def in_flight(self) -> int:
        """How many slots were sent or reset and not yet received."""

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and queue their steps.

        If an action is invalid, this raises and queues nothing.
        """

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for slots in flight, first come, first served, and return slots that are done.

        Args:
            min_slots: How many slots to wait for; None for all slots in flight, which are returned
                in the order in which they were sent.
            timeout: The maximum time to wait, in seconds; None for no limit.
            max_slots: How many slots to return at most, if more are done.
            slots: Wait for these slots instead, and return them in this order.

        Raises:
            ReceiveTimeoutError: The timeout expired. All slots in flight can still be received.
        """

    def step(self, actions: Any) -> Results:
        """Step every slot, and return the results in slot order.

        Equivalent to ``send`` and ``recv``, and possibly faster.
        """

    def latest(self, slots: SlotChoice = None) -> Any:
        """Return the newest observation of each of these slots, as a batch, without a step."""

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot and start to step them: the first half of ``step``."""

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for the step that ``begin_step`` started. After a timeout, call it again."""

    def drop(self) -> None:
        """Wait for all slots in flight, and discard their results."""

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Call each environment, in this or another process; return results in slot order.

        ``what`` is the name of a method to call, the name of an attribute to read, or a function
        to call with the environment as its first argument.
        """

    def worker_states(self) -> list[WorkerState]:
        """Return what drives the slots, the caller included. Any thread may call it at any time."""

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and release all resources; a second call does nothing.

        Args:
            terminate: Kill workers at once, without closing their environments.
            timeout: Seconds until workers that have not ended are killed.
        """

    def abandon(self) -> None:
        """Release all resources of a vector that was garbage-collected without being closed."""


def caller_state(slots: range) -> WorkerState:
    """Return the state of the caller, which drives these slots.

    >>> caller_state(range(4, 8)).name
    'caller'
    """
    return WorkerState("caller", slots)


def check_open(is_closed: bool, doing: str) -> None:
    """Raise ClosedEnvironmentError if a pool is closed."""
    if is_closed:
        raise ClosedEnvironmentError(f"{doing}: the vector environment is closed")


def slot_numbers(slots: SlotChoice, num_envs: int) -> npt.NDArray[np.int64]:
    """Return the chosen slots as numbers, after checking that they are valid and distinct.

    >>> slot_numbers([2, 0], num_envs=3)
    array([2, 0])
    >>> slot_numbers(np.array([True, False, True]), num_envs=3)
    array([0, 2])
    """
    if slots is None:
        return np.arange(num_envs)
    chosen = np.asarray(slots)
    if chosen.dtype == np.bool_ and chosen.shape == (num_envs,):
        return np.flatnonzero(chosen)
    if chosen.ndim != 1 or (chosen.size and not np.issubdtype(chosen.dtype, np.integer)):
        raise TypeError(
            f"slots must be a sequence of integers or a mask of shape ({num_envs},), got {slots!r}"
        )
    invalid = chosen[(chosen < 0) | (chosen >= num_envs)]
    if invalid.size:
        raise IndexError(f"slot {invalid[0]} is out of range: there are {num_envs} slots")
    numbers = np.array(chosen, np.int64)  # a copy: the user may change theirs meanwhile
    if numbers.size and np.bincount(numbers).max() > 1:
        raise ValueError(f"slots must not repeat, got {slots!r}")
    return numbers


def checked_seeds(seeds: Sequence[int | None] | None, count: int) -> list[int | None]:
    """Return one seed, or None, for each of ``count`` slots."""
    if seeds is None:
        return [None] * count
    if len(seeds) != count:
        raise ValueError(f"got {len(seeds)} seeds for {count} slots")
    return list(seeds)
