"""Saving and loading of a wrapper's state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar

import numpy as np

from shoal._wrapper_core.state_files import State, load_state, save_state

__all__ = ["SavesState"]


class SavesState(ABC):
    """Mixin of wrappers whose state can be saved to a file, as arrays without pickle.

    The state consists of what the wrapper has accumulated, without the arguments of its
    constructor and without the environments.

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
    """The wrapper class, as recorded in the file."""
    _any_length: ClassVar[frozenset[str]] = frozenset()
    """Names of arrays whose length may differ from the current ones."""
    _any_precision: ClassVar[frozenset[str]] = frozenset()
    """Names of arrays whose precision may differ from the current ones."""

    def save(self, path: str | Path) -> None:
        """Write the state to a file of exactly this name."""
        save_state(path, self._kind, self._state())

    def load(self, path: str | Path) -> None:
        """Load a state written by :meth:`save`.

        Raises:
            ValueError: The file is not a state of this wrapper, or belongs to another number of
                slots or other shapes. The wrapper is unchanged.
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
            loaded = state[name]
            start = 1 if name in self._any_length else 0
            if loaded.ndim != array.ndim or loaded.shape[start:] != array.shape[start:]:
                raise ValueError(f"{path}: {name} has shape {loaded.shape}, expected {array.shape}")
            fits = name in self._any_precision and loaded.dtype.kind == array.dtype.kind
            if loaded.dtype != array.dtype and not fits:
                raise ValueError(f"{path}: {name} is of {loaded.dtype}, expected {array.dtype}")

    @abstractmethod
    def _state(self) -> State:
        """Return the current state."""

    @abstractmethod
    def _restore(self, state: State) -> None:
        """Replace the current state by one that :meth:`_check` has accepted."""
