"""The spaces of a vector: what its environments must agree on, and what follows for a batch."""

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
    """The spaces of one environment, and those of the whole vector."""

    single_observation: Space[Any]
    observation: Space[Any]
    single_action: Space[Any]
    action: Space[Any]


def agree(
    observation_spaces: Sequence[Space[Any]],
    action_spaces: Sequence[Space[Any]],
    mode: ObservationMode,
) -> VectorSpaces:
    """Batch the spaces of environments, one of each for every slot.

    Args:
        observation_spaces: By slot.
        action_spaces: By slot; all must be equal.
        mode: ``"same"`` where the observation spaces must be equal, ``"different"`` where they may
            differ in their bounds, or the pair (batched space, single space) to use.

    Raises:
        SpaceMismatchError: Naming the first slot that differs, and showing both spaces.
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
    found: Sequence[Space[Any]], expected: Space[Any], mode: ObservationMode
) -> None:
    for slot, space in enumerate(found):
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


def _check_actions(found: Sequence[Space[Any]]) -> None:
    for slot, space in enumerate(found):
        if space != found[0]:
            raise SpaceMismatchError(
                "the sub-environments action spaces are not equivalent. "
                f"Slot {slot} has {space}, slot 0 has {found[0]}."
            )
