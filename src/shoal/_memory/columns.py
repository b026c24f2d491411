"""The columns of a vector's arena, as objects for the native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal._memory.arena import Arena, Field
from shoal._spaces import Layout

__all__ = ["VectorColumns"]

_STATE = {
    "finished": Field(np.dtype(np.bool_)),
    "episode_return": Field(np.dtype(np.float64)),
    "episode_length": Field(np.dtype(np.int64)),
    "episode_start": Field(np.dtype(np.float64)),
}
_STEP_START = "step_start"
_RESULT = {
    "rewards": Field(np.dtype(np.float64)),
    "terminated": Field(np.dtype(np.bool_)),
    "truncated": Field(np.dtype(np.bool_)),
}


class VectorColumns:
    """The columns of a vector: the state of slots between steps, actions, and banks for batches.

    Args:
        observations: Layout of one environment's observations.
        actions: Layout of one environment's actions.
        rows: Number of slots.
        banks: Number of batches that are held at once; banks are filled in rotation.
        shared: Whether other processes can attach to the columns by ``descriptor``.
        descriptor: Descriptor of existing columns to attach to.
    """

    def __init__(
        self,
        observations: Layout,
        actions: Layout,
        rows: int,
        banks: int,
        *,
        shared: bool = False,
        descriptor: int | None = None,
    ) -> None:
        fields = {**_STATE, _STEP_START: Field(np.dtype(np.float64))}
        fields |= {f"action{leaf.path}": Field(leaf.dtype, leaf.shape) for leaf in actions.leaves}
        for bank in range(banks):
            fields |= {f"{bank}/{name}": field for name, field in _RESULT.items()}
            fields |= {
                f"{bank}/observation{leaf.path}": Field(leaf.dtype, leaf.shape)
                for leaf in observations.leaves
            }
        self._observations = observations
        self._actions = actions
        self._arena = Arena(fields, rows, shared=shared, descriptor=descriptor)

    @property
    def descriptor(self) -> int | None:
        """The descriptor by which other processes attach, or None for private memory."""
        return self._arena.descriptor

    def close(self) -> None:
        """Close the descriptor; the memory lives as long as it is referenced."""
        self._arena.close()

    def state(self) -> _native.SlotState:
        """Return the state of the slots between steps."""
        columns = {name: self._arena[name] for name in _STATE}
        return _native.SlotState(slots=self._arena.rows, **columns)

    def finished(self) -> npt.NDArray[np.bool_]:
        """Return the mask of slots whose episode has ended, unless they reset in the same step."""
        return self._arena["finished"]

    def begun(self) -> npt.NDArray[np.float64]:
        """Return the start time of each slot's step; 0 if the slot is idle."""
        return self._arena[_STEP_START]

    def saved(self) -> dict[str, npt.NDArray[Any]]:
        """Return a copy of the state of the slots between steps."""
        return {name: self._arena[name].copy() for name in _STATE}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Restore a state that :meth:`saved` returned."""
        for name, column in saved.items():
            self._arena[name][:] = column

    def actions(self) -> list[npt.NDArray[Any]]:
        """Return the action columns, in the order of the leaves."""
        return [self._arena[f"action{leaf.path}"] for leaf in self._actions.leaves]

    def results(self, bank: int) -> dict[str, npt.NDArray[Any]]:
        """Return the columns of one batch besides its observations, by name."""
        return {name: self._arena[f"{bank}/{name}"] for name in _RESULT}

    def bank(self, number: int) -> _native.Bank:
        """Return the columns of one batch."""
        leaves = self._observations.leaves
        return _native.Bank(
            self._observations.tree,
            [self._arena[f"{number}/observation{leaf.path}"] for leaf in leaves],
            rows=self._arena.rows,
            **self.results(number),
        )
