"""Which columns the arena of a vector has, and how the native code is given them."""

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
_BEGUN = "begun"
_RESULT = {
    "rewards": Field(np.dtype(np.float64)),
    "terminated": Field(np.dtype(np.bool_)),
    "truncated": Field(np.dtype(np.bool_)),
}


class VectorColumns:
    """The columns of a vector: what slots carry over, their actions, and banks for batches.

    Args:
        observations: Layout of one environment's observations.
        actions: Layout of one environment's actions.
        rows: One for each slot.
        banks: How many batches can be held at once; they are filled in rotation.
        shared: Whether other processes can attach to the columns, by ``descriptor``.
        descriptor: Attach to the columns of another process instead of making some.
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
        fields = {**_STATE, _BEGUN: Field(np.dtype(np.float64))}
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
        """By which other processes attach, where the columns are shared."""
        return self._arena.descriptor

    def close(self) -> None:
        """Give back the descriptor; the memory lives as long as someone looks at it."""
        self._arena.close()

    def state(self) -> _native.SlotState:
        """What each slot carries over to its next step."""
        columns = {name: self._arena[name] for name in _STATE}
        return _native.SlotState(slots=self._arena.rows, **columns)

    def finished(self) -> npt.NDArray[np.bool_]:
        """Which slots have ended their episodes, where their next step depends on it."""
        return self._arena["finished"]

    def begun(self) -> npt.NDArray[np.float64]:
        """Since when each slot is being worked on, for those who want to know; 0 for not at all."""
        return self._arena[_BEGUN]

    def saved(self) -> dict[str, npt.NDArray[Any]]:
        """A copy of what each slot carries over."""
        return {name: self._arena[name].copy() for name in _STATE}

    def restore(self, saved: dict[str, npt.NDArray[Any]]) -> None:
        """Set what each slot carries over to what it was when it was saved."""
        for name, column in saved.items():
            self._arena[name][:] = column

    def actions(self) -> list[npt.NDArray[Any]]:
        """The action columns, in the order of the leaves."""
        return [self._arena[f"action{leaf.path}"] for leaf in self._actions.leaves]

    def results(self, bank: int) -> dict[str, npt.NDArray[Any]]:
        """The columns of one batch besides its observations, by name."""
        return {name: self._arena[f"{bank}/{name}"] for name in _RESULT}

    def bank(self, number: int) -> _native.Bank:
        """The columns of one batch."""
        leaves = self._observations.leaves
        return _native.Bank(
            self._observations.tree,
            [self._arena[f"{number}/observation{leaf.path}"] for leaf in leaves],
            rows=self._arena.rows,
            **self.results(number),
        )
