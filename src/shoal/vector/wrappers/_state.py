"""Saving and loading what a wrapper has gathered."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from shoal._wrapper_core.state_files import State, load_state, save_state

__all__ = ["SavesState"]


class SavesState(ABC):
    """A wrapper with a state that can be kept in a file: arrays only, no pickle.

    The state is what the wrapper has gathered; the arguments of its constructor and the
    environments are not part of it.

    Example:
        >>> import shoal, tempfile
        >>> from shoal.vector.wrappers import NormalizeObservation
        >>> with shoal.make("CartPole-v1", num_envs=4, backend="inline") as envs:
        ...     trained, evaluated = NormalizeObservation(envs), NormalizeObservation(envs)
        ...     _ = trained.reset(seed=0)
        ...     with tempfile.NamedTemporaryFile() as file:
        ...         trained.save(file.name)
        ...         evaluated.load(file.name)
        ...     evaluated.obs_rms.count
        4.0001
    """

    _kind: ClassVar[str]
    """Whose state it is, as the file tells."""
    _any_length: ClassVar[frozenset[str]] = frozenset()
    """Arrays that may be of another length than those they replace."""
    _any_precision: ClassVar[frozenset[str]] = frozenset()
    """Arrays that may be of another size of number than those they replace."""

    def save(self, path: str | Path) -> None:
        """Write the state into a file of exactly this name."""
        save_state(path, self._kind, self._state())

    def load(self, path: str | Path) -> None:
        """Continue from a state that :meth:`save` has written.

        Raises:
            ValueError: The file holds something else, or a state for other slots or shapes.
                Nothing has changed.
        """
        state = load_state(path, self._kind)
        self._check(path, state)
        self._restore(state)

    def _check(self, path: str | Path, state: State) -> None:
        expected = self._state()
        if state.keys() != expected.keys():
            raise ValueError(f"{path} holds {sorted(state)}, expected {sorted(expected)}")
        if "num_envs" in expected and not np.array_equal(state["num_envs"], expected["num_envs"]):
            raise ValueError(
                f"{path} was saved with {state['num_envs']} slots, this vector has "
                f"{expected['num_envs']}"
            )
        for name, array in expected.items():
            found = state[name]
            start = 1 if name in self._any_length else 0
            if found.ndim != array.ndim or found.shape[start:] != array.shape[start:]:
                raise ValueError(f"{path}: {name} has shape {found.shape}, expected {array.shape}")
            fits = name in self._any_precision and found.dtype.kind == array.dtype.kind
            if found.dtype != array.dtype and not fits:
                raise ValueError(f"{path}: {name} is of {found.dtype}, expected {array.dtype}")

    @abstractmethod
    def _state(self) -> State:
        """The state as it is now."""

    @abstractmethod
    def _restore(self, state: State) -> None:
        """Take on a state with the arrays of :meth:`_state`, which were checked."""
