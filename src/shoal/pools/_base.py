"""The contract that every pool keeps and every frontend relies on."""

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
    """What ``recv`` returns: row k of everything belongs to ``slots[k]``.

    A pool gives ``infos`` raw: None where no slot had any, else the pair of a list of (row, info)
    and the episodes that ended, as (mask, returns, lengths, seconds) or None; or, where all slots
    tell the same, :class:`shoal._types.ColumnInfos`. A frontend puts them into the form of its
    interface.
    """

    slots: npt.NDArray[np.int64]
    observations: Any
    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    infos: Any

    @property
    def raw_infos(self) -> RawInfos | None:
        """``infos`` as a pool gives them, in the form of a list."""
        return as_events(self.infos, len(self.slots))


class WorkerState(NamedTuple):
    """Who drives a share of the slots, at this moment."""

    name: str
    slots: range
    place: str = ""
    """Where, if that is not this machine."""
    process: int | None = None
    """None for a thread of this process."""
    thread: int | None = None
    """Of this process, as the system knows it; None for whichever thread steps the vector."""
    restarts: int = 0
    """How often it was lost, and another one took its place."""


class Pool(Protocol):
    """Many environments, stepped as one.

    A slot has at most one thing in flight: a reset or a step that was queued and not yet received.
    ``slots`` is everywhere None for all of them, a sequence of slot numbers, or a boolean mask.
    ``copy`` tells whether batches are the caller's to keep, or views that are used again.
    ``restarts`` tells whether a slot that has lost its environment gets a new one: it then comes
    back reset, truncated, and with ``crashed`` in its info.
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
        """The environments where they are objects of this process, else None."""

    @property
    def in_flight(self) -> int:
        """How many slots have been sent or reset, and not been received."""

    def reset(
        self,
        slots: SlotChoice = None,
        seeds: Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        """Queue resets; ``seeds`` has one for each of these slots."""

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Check actions, one for each of these slots, and queue their steps.

        Raises before anything is queued where an action is wrong.
        """

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        max_slots: int | None = None,
        slots: SlotChoice = None,
    ) -> Batch:
        """Wait for queued work, first come, first served, and return what is done.

        Args:
            min_slots: How many slots to wait for; None for all that are in flight, which then come
                in the order in which they were sent.
            timeout: Seconds to wait at the most, None for no limit.
            max_slots: How many slots to return at the most, where more are done.
            slots: Wait for these slots instead, and return them in this order.

        Raises:
            ReceiveTimeoutError: The time is over. What is in flight can still be received.
        """

    def step(self, actions: Any) -> Results:
        """Send every slot, receive every slot, and return the results in slot order.

        The same as ``send`` and ``recv``; a pool can make it faster than the two.
        """

    def latest(self, slots: SlotChoice = None) -> Any:
        """The newest observation of each of these slots, as a batch, without stepping them."""

    def begin_step(self, actions: Any) -> None:
        """Check actions for every slot, and begin to step them: the first half of ``step``."""

    def end_step(self, timeout: float | None = None) -> Results:
        """Wait for what ``begin_step`` has begun; after a timeout it can be asked for again."""

    def drop(self) -> None:
        """Wait for all that is in flight, and forget it."""

    def call(self, what: Called, *args: Any, slots: SlotChoice = None, **kwargs: Any) -> list[Any]:
        """Reach each environment, wherever it is; results in the order of the slots.

        ``what`` is the name of a method, which is called, or of an attribute, which is read; or a
        function, which is called with the environment before the other arguments.
        """

    def worker_states(self) -> list[WorkerState]:
        """Who drives the slots, the caller included. Any thread may ask, also during a step."""

    def close(self, *, terminate: bool = False, timeout: float | None = None) -> None:
        """Close every environment and give back everything; a second call does nothing.

        Args:
            terminate: End workers at once, without closing their environments.
            timeout: Seconds until workers that have not ended are ended by force.
        """

    def abandon(self) -> None:
        """Give back everything, for a vector that is garbage and was not closed."""


def caller_state(slots: range) -> WorkerState:
    """The share of whoever steps the vector.

    >>> caller_state(range(4, 8)).name
    'caller'
    """
    return WorkerState("caller", slots)


def check_open(is_closed: bool, doing: str) -> None:
    """Raise ClosedEnvironmentError if a pool is closed."""
    if is_closed:
        raise ClosedEnvironmentError(f"{doing}: the vector environment is closed")


def slot_numbers(slots: SlotChoice, num_envs: int) -> npt.NDArray[np.int64]:
    """The chosen slots as numbers, checked: in range, and none of them twice.

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
    wrong = chosen[(chosen < 0) | (chosen >= num_envs)]
    if wrong.size:
        raise IndexError(f"slot {wrong[0]} is out of range: there are {num_envs} slots")
    numbers = np.array(chosen, np.int64)  # a copy: the caller may change theirs while it is in use
    if numbers.size and np.bincount(numbers).max() > 1:
        raise ValueError(f"slots must not repeat, got {slots!r}")
    return numbers


def checked_seeds(seeds: Sequence[int | None] | None, count: int) -> list[int | None]:
    """One seed, or None, for each of so many slots."""
    if seeds is None:
        return [None] * count
    if len(seeds) != count:
        raise ValueError(f"got {len(seeds)} seeds for {count} slots")
    return list(seeds)
