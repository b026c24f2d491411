"""Slots divided into contiguous parts, each of which is stepped by somebody else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode

from shoal import _native
from shoal._memory import VectorColumns
from shoal._spaces import Layout, VectorSpaces
from shoal._spaces.leaves import Leaves, batch_leaves, batch_of_leaves, take_rows
from shoal.pools._base import Batch

__all__ = ["CheckedActions", "Share", "SlotPartition"]

Numbers = npt.NDArray[np.int64]


class Share(NamedTuple):
    """What of some chosen slots belongs to one part."""

    place: int
    """The number of the part."""

    places: list[int]
    """Where its slots stand among the chosen ones."""

    own: Numbers
    """The same slots as the part numbers them."""


class SlotPartition:
    """The slots of the first part, then those of the second, and so on.

    >>> partition = SlotPartition([3, 2])
    >>> partition.num_envs, partition.slots_of(1)
    (5, range(3, 5))
    >>> partition.shares(np.array([4, 0]))[1]
    Share(place=1, places=[0], own=array([1]))
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self.starts = np.cumsum([0, *counts])
        self.num_envs = int(self.starts[-1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def slots_of(self, place: int) -> range:
        """The slots of a part."""
        return range(int(self.starts[place]), int(self.starts[place + 1]))

    def owners(self, slots: Any) -> Numbers:
        """The part that each of these slots belongs to."""
        owners: Numbers = np.searchsorted(self.starts, slots, side="right") - 1
        return owners

    def shares(self, slots: Numbers) -> list[Share]:
        """What belongs to each part that has some of these slots; to all, where there are none."""
        owners = self.owners(slots)
        shares = []
        for place in range(len(self)):
            places = np.flatnonzero(owners == place)
            if len(places) or not len(slots):
                shares.append(Share(place, places.tolist(), slots[places] - self.starts[place]))
        return shares


class CheckedActions:
    """Checks actions for a whole vector before any part of it is given its own.

    Args:
        spaces: Of the vector.
        num_envs: How many slots it has.
        autoreset_mode: In all modes but DISABLED a slot that is about to be reset may be sent
            anything.
    """

    def __init__(self, spaces: VectorSpaces, num_envs: int, autoreset_mode: AutoresetMode) -> None:
        self.layout = Layout.of(spaces.single_action, ordered_like=spaces.action)
        columns = VectorColumns(Layout.of(spaces.single_observation), self.layout, num_envs, 0)
        mode = getattr(_native.Autoreset, autoreset_mode.name)
        self._intake = _native.ActionIntake(
            self.layout.tree, columns.actions(), columns.state(), mode
        )
        self._finished = columns.finished()
        self._notes_endings = autoreset_mode is not AutoresetMode.SAME_STEP

    def leaves(self, actions: Any, slots: Numbers | None) -> Leaves:
        """The leaves of actions, one for each of these slots, or for all.

        Raises:
            InvalidActionError: One of them is wrong; nobody has been sent anything.
        """
        self._intake.accept(actions, slots)
        arrays, objects = batch_leaves(self.layout, actions)
        return [np.asarray(array) for array in arrays], objects

    def part(self, leaves: Leaves, places: list[int]) -> Any:
        """The actions at these places, as a batch of their own."""
        return batch_of_leaves(self.layout, *take_rows(leaves, places))

    def note(self, batch: Batch) -> None:
        """Note which slots have ended their episodes."""
        if self._notes_endings:
            self._finished[batch.slots] = batch.terminated | batch.truncated
