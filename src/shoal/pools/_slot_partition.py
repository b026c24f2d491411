"""Slots divided into contiguous parts, each of which belongs to another pool."""

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

__all__ = ["ActionChecker", "Share", "SlotPartition"]

SlotNumbers = npt.NDArray[np.int64]


class Share(NamedTuple):
    """Those of some chosen slots that belong to one part."""

    part: int
    """The index of the part."""

    rows: list[int]
    """The positions of these slots among the chosen ones."""

    local_slots: SlotNumbers
    """The same slots, numbered within the part."""


class SlotPartition:
    """The slots of the first part, then those of the second, and so on.

    >>> partition = SlotPartition([3, 2])
    >>> partition.num_envs, partition.slots_of(1)
    (5, range(3, 5))
    >>> partition.shares(np.array([4, 0]))[1]
    Share(part=1, rows=[0], local_slots=array([1]))
    """

    def __init__(self, counts: Sequence[int]) -> None:
        self.starts = np.cumsum([0, *counts])
        self.num_envs = int(self.starts[-1])

    def __len__(self) -> int:
        return len(self.starts) - 1

    def slots_of(self, part: int) -> range:
        """Return the slots of a part."""
        return range(int(self.starts[part]), int(self.starts[part + 1]))

    def owners(self, slots: Any) -> SlotNumbers:
        """Return the index of the part that each of these slots belongs to."""
        owners: SlotNumbers = np.searchsorted(self.starts, slots, side="right") - 1
        return owners

    def shares(self, slots: SlotNumbers) -> list[Share]:
        """Return the share of each part that has some of these slots.

        Without slots, every part has an empty share.
        """
        owners = self.owners(slots)
        shares = []
        for part in range(len(self)):
            rows = np.flatnonzero(owners == part)
            if len(rows) or not len(slots):
                shares.append(Share(part, rows.tolist(), slots[rows] - self.starts[part]))
        return shares


class ActionChecker:
    """Checks the actions of a whole vector before any of them is sent to a part.

    Args:
        spaces: The spaces of the vector.
        num_envs: How many slots the vector has.
        autoreset_mode: In all modes but DISABLED, the action of a slot that is about to be reset is
            not checked.
    """

    def __init__(self, spaces: VectorSpaces, num_envs: int, autoreset_mode: AutoresetMode) -> None:
        self.layout = Layout.of(spaces.single_action, ordered_like=spaces.action)
        columns = VectorColumns(Layout.of(spaces.single_observation), self.layout, num_envs, 0)
        mode = getattr(_native.Autoreset, autoreset_mode.name)
        self._intake = _native.ActionIntake(
            self.layout.tree, columns.actions(), columns.state(), mode
        )
        self._finished = columns.finished()
        self._tracks_finished = autoreset_mode is not AutoresetMode.SAME_STEP

    def check(self, actions: Any, slots: SlotNumbers | None) -> Leaves:
        """Check actions, one for each of these slots or for all, and return their leaves.

        Raises:
            InvalidActionError: An action is invalid.
        """
        self._intake.accept(actions, slots)
        arrays, objects = batch_leaves(self.layout, actions)
        return [np.asarray(array) for array in arrays], objects

    def part(self, leaves: Leaves, rows: list[int]) -> Any:
        """Return these rows of checked actions, as a batch."""
        return batch_of_leaves(self.layout, *take_rows(leaves, rows))

    def note_finished(self, batch: Batch) -> None:
        """Note which slots have finished their episodes."""
        if self._tracks_finished:
            self._finished[batch.slots] = batch.terminated | batch.truncated
