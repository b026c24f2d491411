"""What a Ray pool and its actors say to each other.

Ray pickles what it carries, between a caller and the actors that it has started itself. Arrays lie
outside of the pickled bytes: large ones stay in the object store of the node, and who reads them
there reads the same memory. What may fail to be pickled (infos, objects, errors, results) is
pickled here, so that its failure is known by its slot.
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
    "REQUESTS",
    "Answer",
    "Failed",
    "Introduction",
    "Rows",
    "Task",
    "pack_rows",
    "packed",
    "sendable",
    "unpack_rows",
]

Numbers = npt.NDArray[np.int64]

REQUESTS = 2
"""How many requests an actor has at a time: one that it works on, and one to go on with."""


class Task(NamedTuple):
    """Slots to be stepped or reset; ``slots`` are the actor's own numbers."""

    number: int
    slots: Numbers
    actions: Any = None
    seeds: Sequence[int | None] | None = None
    options: bytes = b""
    """Of a reset, pickled; empty where there are none."""
    is_whole: bool = False
    """Whether these are all of the actor's slots, which are answered together."""


class Rows(NamedTuple):
    """Slots that are done, of one task."""

    number: int
    slots: Numbers
    arrays: list[npt.NDArray[Any]]
    rewards: npt.NDArray[np.float64]
    terminated: npt.NDArray[np.bool_]
    truncated: npt.NDArray[np.bool_]
    rest: bytes
    """Parts of no fixed shape and infos; empty where there are none."""


class Failed(NamedTuple):
    """Slots of one task, and what was raised for them."""

    number: int
    slots: list[int]
    error: PackedError


class Answer(NamedTuple):
    """What is done, and how many slots are still in flight in the actor."""

    outcomes: list[Rows | Failed]
    in_flight: int


class Introduction(NamedTuple):
    """What an actor says of itself and of its pool once that is built."""

    spaces: list[tuple[Space[Any], Space[Any]]]
    """Of each slot: what it observes, and what it does."""
    autoreset_mode: AutoresetMode
    metadata: dict[str, Any]
    render_mode: str | None
    node: Node
    process: int
    hosts: str
    """What kind of pool it has."""


def packed(value: Any, *, by_value: bool = False) -> bytes:
    """Pickle something of a user's.

    ``by_value`` is for the way to an actor, whose main module is another one: what stands in the
    caller's is sent along.
    """
    if by_value:
        return bytes(cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL))
    try:
        return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
    except Exception:
        return bytes(cloudpickle.dumps(value, pickle.HIGHEST_PROTOCOL))


def sendable(value: Any, what: str) -> bytes:
    """Pickle something for an actor, before anything else is done.

    Raises:
        TypeError: It cannot be pickled.
    """
    try:
        return packed(value, by_value=True)
    except Exception as error:
        raise TypeError(f"{what} cannot be sent to an actor: {error}") from error


def pack_rows(layout: Layout, number: int, batch: Batch, num_envs: int) -> Rows | Failed:
    """Rows of a task; where they cannot be sent, a failure that names the slot that is to blame."""
    arrays, objects = batch_leaves(layout, batch.observations)
    rest = b""
    if batch.infos is not None or objects:
        try:
            rest = packed((objects, batch.infos))
        except Exception as error:
            slot, what = _culprit(batch, objects)
            error.add_note(f"shoal: in slot {slot} of {num_envs}, in its {what}")
            error.add_note("shoal: it was to be sent from an actor to the caller")
            return Failed(number, batch.slots.tolist(), pack_error(error))
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
    """The batch, with its slots as the caller numbers them, from ``first`` on."""
    objects, infos = pickle.loads(rows.rest) if rows.rest else ([], None)
    observations = batch_of_leaves(layout, rows.arrays, objects)
    slots = rows.slots + first
    return Batch(slots, observations, rows.rewards, rows.terminated, rows.truncated, infos)


def _culprit(batch: Batch, objects: list[list[Any]]) -> tuple[int, str]:
    """The first slot that has something which cannot be pickled, and what that is."""
    told = [(row, info, "info") for row, info in (batch.raw_infos or ([], None))[0]]
    told += [(row, item, "observation") for items in objects for row, item in enumerate(items)]
    for row, value, what in told:
        try:
            packed(value)
        except Exception:
            return int(batch.slots[row]), what
    return int(batch.slots[0]), "infos"
