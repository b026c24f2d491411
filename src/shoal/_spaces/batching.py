"""The spaces of a vector, derived from those of its environments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gymnasium import Space
from gymnasium.spaces.utils import is_space_dtype_shape_equiv
from gymnasium.vector.utils import batch_differing_spaces, batch_space

from shoal.errors import SpaceMismatchError

__all__ = ["ObservationMode", "VectorSpaces", "agree"]

ObservationMode = Literal["same", "different"] | tuple[Space[Any], Space[Any]]


@dataclass(frozen=True)
class VectorSpaces:
    """The spaces of one environment and of the vector."""

    single_observation: Space[Any]
    observation: Space[Any]
    single_action: Space[Any]
    action: Space[Any]


def agree(
    observation_spaces: Sequence[Space[Any]],
    action_spaces: Sequence[Space[Any]],
    mode: ObservationMode,
) -> VectorSpaces:
    """Check that the environments' spaces are compatible, and batch them.

    Args:
        observation_spaces: The observation space of each slot.
        action_spaces: The action space of each slot; all must be equal.
        mode: ``"same"`` if the observation spaces must be equal, ``"different"`` if they may differ
            in their bounds, or a pair (batched space, single space).

    Raises:
        SpaceMismatchError: A slot has another space; the message shows both spaces.
    """
    count = len(observation_spaces)
    if isinstance(mode, tuple) and len(mode) == 2:
        if not all(isinstance(space, Space) for space in mode):
            raise TypeError(
                "expected both elements of observation_mode to be spaces, got "
                f"{type(mode[0]).__name__} and {type(mode[1]).__name__}"
            )
        single = mode[1]
    elif mode in ("same", "different"):
        single = observation_spaces[0]
    else:
        raise ValueError(
            "Invalid `observation_mode`, expected: 'same' or 'different' or tuple of single and "
            f"batch observation space, actual got {mode}"
        )
    _check_observations(observation_spaces, single, mode)
    _check_actions(action_spaces)
    if mode == "same":
        observation = batch_space(single, count)
    elif mode == "different":
        observation = batch_differing_spaces(list(observation_spaces))
    else:
        observation = mode[0]
    action = batch_space(action_spaces[0], count)
    return VectorSpaces(single, observation, action_spaces[0], action)


def _check_observations(
    observation_spaces: Sequence[Space[Any]], expected: Space[Any], mode: ObservationMode
) -> None:
    for slot, space in enumerate(observation_spaces):
        if mode == "same" and space != expected:
            raise SpaceMismatchError(
                "with observation_mode='same' the sub-environments observation spaces are not "
                f"equivalent. Slot {slot} has {space}, slot 0 has {expected}. "
                "If this is intentional, use `observation_mode='different'` instead."
            )
        if mode != "same" and not is_space_dtype_shape_equiv(space, expected):
            raise SpaceMismatchError(
                "the sub-environments observation spaces do not share a common shape and dtype. "
                f"Slot {slot} has {space}, expected one like {expected}."
            )


def _check_actions(action_spaces: Sequence[Space[Any]]) -> None:
    for slot, space in enumerate(action_spaces):
        if space != action_spaces[0]:
            raise SpaceMismatchError(
                "the sub-environments action spaces are not equivalent. "
                f"Slot {slot} has {space}, slot 0 has {action_spaces[0]}."
            )
