"""Conversion of Stable-Baselines3's actions to batches for pools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import Space, spaces

from shoal.errors import InvalidActionError

__all__ = ["batched_actions"]


def batched_actions(space: Space[Any], actions: Any, num_envs: int) -> Any:
    """Convert a sequence with one action per environment to a batch of the action space.

    For arrays and numbers the two are the same. For dicts and tuples, each part becomes a batch.
    Floats become integers if the action space has an integer dtype and no value is lost, since
    policies return floats for spaces that are not discrete. For a single environment, the action
    need not be in a sequence.

    >>> batched_actions(spaces.Dict(a=spaces.Discrete(2)), [{"a": 1}, {"a": 0}], 2)
    {'a': [1, 0]}
    >>> batched_actions(spaces.MultiBinary(2), np.array([[0.0, 1.0]]), 1)
    array([[0, 1]], dtype=int8)
    """
    if num_envs == 1 and space.shape and getattr(actions, "shape", None) == space.shape:
        actions = actions[None]
    if isinstance(space, spaces.Box | spaces.MultiBinary):
        return _cast_to_integers(space, actions)
    if not isinstance(space, spaces.Dict | spaces.Tuple):
        return actions
    if not hasattr(actions, "__len__") or isinstance(actions, dict):
        raise InvalidActionError(
            f"got {type(actions).__name__}, expected a sequence of {num_envs} actions"
        )
    if len(actions) != num_envs:
        raise InvalidActionError(f"got {len(actions)} actions for {num_envs} environments")
    return _transposed(space, list(actions), "")


def _cast_to_integers(space: spaces.Box | spaces.MultiBinary, actions: Any) -> Any:
    if not isinstance(actions, np.ndarray) or actions.dtype.kind != "f":
        return actions
    if not np.issubdtype(space.dtype, np.integer):
        return actions
    with np.errstate(invalid="ignore"):  # the comparison below detects NaN
        integers = actions.astype(space.dtype)
    return integers if np.array_equal(integers, actions) else actions


def _transposed(space: Space[Any], actions: Sequence[Any], path: str) -> Any:
    if isinstance(space, spaces.Dict):
        return {
            key: _transposed(part, _parts(actions, key, path), f"{path}[{key!r}]")
            for key, part in space.spaces.items()
        }
    if isinstance(space, spaces.Tuple):
        return tuple(
            _transposed(part, _parts(actions, place, path), f"{path}[{place}]")
            for place, part in enumerate(space.spaces)
        )
    return actions


def _parts(actions: Sequence[Any], key: str | int, path: str) -> list[Any]:
    parts = []
    for slot, action in enumerate(actions):
        try:
            parts.append(action[key])
        except (KeyError, IndexError, TypeError) as error:
            raise InvalidActionError(
                f"the action of slot {slot} has no part {path}[{key!r}]: {action!r}"
            ) from error
    return parts
