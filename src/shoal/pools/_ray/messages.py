"""The messages between a Ray pool and its actors.

Ray pickles its messages; the caller exchanges them only with actors that it has started. Arrays are
stored outside of the pickled bytes: large ones stay in the object store of the node, and processes
of that node read them without a copy. Values that may fail to pickle (infos, objects, errors,
results) are pickled here, so that a failure can be reported with its slot.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import cloudpickle
import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.vector import AutoresetMode

from shoal._spaces import Layout
from shoal._spaces.leaves import batch_leaves, batch_of_leaves
from shoal.pools._base import Batch
from shoal.pools._processes.error_packing import PackedError, pack_error
from shoal.pools._ray.cluster import Node

__all__ = [
    "MAX_REQUESTS",
    "FailedSlots",
    "PoolInfo",
    "Response",
    "Rows",
    "Task",
    "pack",
    "pack_for_actor",
    "pack_rows",
    "unpack_rows",
]

SlotNumbers = npt.NDArray[np.int64]

MAX_REQUESTS = 2
"""How many requests an actor has at a time: one that it works on, and one that is queued."""


class Task(NamedTuple):
    """Slots to step or reset; ``slots`` are numbered within the actor."""

    number: int
    slots: SlotNumbers
    actions: Any = None
    """None for a reset."""
    seeds: Sequence[int | None] | None = None
    """None for a step."""
    options: bytes = b""
    """The pickled options of a reset; empty if there are none."""
    is_whole: bool = False
    """Whether the task has all slots of the actor, which then come back in one response."""


class Rows(NamedTuple):
    """The results of slots of one task."""

    number: int
    slots: SlotNumbers
    arrays: list[npt.NDArray[Any]]
    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    rest: bytes
    """The parts of observations without a fixed shape, and infos; empty if there are none."""


class FailedSlots(NamedTuple):
    """Slots of one task that have failed, with their error."""

    number: int
    slots: list[int]
    error: PackedError


class Response(NamedTuple):
    """Slots that are done, and how many slots are still in flight in the actor."""

    outcomes: list[Rows | FailedSlots]
    in_flight: int


class PoolInfo(NamedTuple):
    """What an actor reports once its pool is built."""

    spaces: list[tuple[Space[Any], Space[Any]]]
    """The observation space and the action space of each slot."""
    autoreset_mode: AutoresetMode
    metadata: dict[str, Any]
    render_mode: str | None
    node: Node
    process: int
    pool_type: str
    """The class name of the pool."""


def pack(value: Any, *, by_value: bool = False) -> bytes:
    """Pickle a value of the user's.

    Args:
        value: The value.
        by_value: Whether classes and functions of the main module are included. They must be on the
            way to an actor, which has another main module.
    """
    if by_value:
        return bytes(cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return bytes(cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def pack_for_actor(value: Any, name: str) -> bytes:
    """Pickle a value that is sent to an actor; ``name`` is used in the error.

    Raises:
        TypeError: It cannot be pickled.
    """
    try:
        return pack(value, by_value=True)
    except Exception as error:
        raise TypeError(f"{name} cannot be sent to an actor: {error}") from error


def pack_rows(layout: Layout, number: int, batch: Batch, num_envs: int) -> Rows | FailedSlots:
    """Pack the results of a task; if they cannot be pickled, the error names the slot."""
    arrays, objects = batch_leaves(layout, batch.observations)
    rest = b""
    if batch.infos is not None or objects:
        try:
            rest = pack((objects, batch.infos))
        except Exception as error:
            slot, kind = _find_unpicklable(batch, objects)
            error.add_note(f"shoal: in slot {slot} of {num_envs}, in its {kind}")
            error.add_note("shoal: it was to be sent from an actor to the caller")
            return FailedSlots(number, batch.slots.tolist(), pack_error(error))
    return Rows(
        number,
        batch.slots,
        list(arrays),
        batch.rewards,
        batch.terminated,
        batch.truncated,
        rest,
    )


def unpack_rows(layout: Layout, rows: Rows, first: int) -> Batch:
    """Return the results of a task, with slots numbered within the vector.

    Args:
        layout: The layout of observations.
        rows: The results.
        first: The slot of the vector that is slot 0 of the actor.
    """
    objects, infos = pickle.loads(rows.rest) if rows.rest else ([], None)
    observations = batch_of_leaves(layout, rows.arrays, objects)
    slots = rows.slots + first
    return Batch(slots, observations, rows.rewards, rows.terminated, rows.truncated, infos)


def _find_unpicklable(batch: Batch, objects: list[list[Any]]) -> tuple[int, str]:
    """Return the first slot with a value that cannot be pickled, and the kind of that value."""
    values = [(row, info, "info") for row, info in (batch.raw_infos or ([], None))[0]]
    values += [(row, item, "observation") for items in objects for row, item in enumerate(items)]
    for row, value, kind in values:
        try:
            pack(value)
        except Exception:
            return int(batch.slots[row]), kind
    return int(batch.slots[0]), "infos"
