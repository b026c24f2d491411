"""Conversion of observations of any space to rows of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

__all__ = ["Flatten", "make_flatten"]

Flatten = Callable[[Any], npt.NDArray[np.float32]]


def make_flatten(space: spaces.Space[Any]) -> tuple[int, Flatten]:
    """Return the flattened size of an observation, and a function that flattens a batch.

    Discrete values become one-hot vectors.

    >>> space = spaces.Dict(place=spaces.Discrete(3), speed=spaces.Box(-1, 1, (2,)))
    >>> size, flatten = make_flatten(space)
    >>> flatten({"place": np.array([2]), "speed": np.array([[0.5, -0.5]])})
    array([[ 0. ,  0. ,  1. ,  0.5, -0.5]], dtype=float32)
    """
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        size = int(np.prod(space.shape))
        return size, lambda batch: np.asarray(batch, np.float32).reshape(len(batch), size)
    if isinstance(space, spaces.Discrete):
        choices, start = int(space.n), int(space.start)
        return choices, lambda batch: _one_hot(np.asarray(batch)[:, None], [choices], [start])
    if isinstance(space, spaces.MultiDiscrete):
        counts, starts = space.nvec.ravel().tolist(), space.start.ravel().tolist()
        return sum(counts), lambda batch: _one_hot(
            np.asarray(batch).reshape(len(batch), -1), counts, starts
        )
    if isinstance(space, spaces.Dict):
        return _joined([(name, part) for name, part in space.items()])
    if isinstance(space, spaces.Tuple):
        return _joined(list(enumerate(space)))
    raise ValueError(
        f"observations must be convertible to rows of numbers, got {space}: wrap the environment"
    )


def _one_hot(
    choices: npt.NDArray[Any], counts: list[int], starts: list[int]
) -> npt.NDArray[np.float32]:
    rows = np.zeros((len(choices), sum(counts)), np.float32)
    first = 0
    for column, (count, start) in enumerate(zip(counts, starts, strict=True)):
        rows[np.arange(len(choices)), first + choices[:, column] - start] = 1.0
        first += count
    return rows


def _joined(parts: list[tuple[Any, spaces.Space[Any]]]) -> tuple[int, Flatten]:
    flattened = [(key, *make_flatten(part)) for key, part in parts]

    def flatten(batch: Any) -> npt.NDArray[np.float32]:
        return np.concatenate([flatten_part(batch[key]) for key, _, flatten_part in flattened], 1)

    return sum(size for _, size, _ in flattened), flatten
