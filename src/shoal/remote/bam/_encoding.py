"""Actions and observations of a space as the numbers of GymAPI messages, and back.

Leaves come one after the other in the order of the space, the elements of each in C order. Nothing
is rounded on the way: a number that would not come out as it went in is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space

from shoal._spaces import Layout, Leaf, ObjectLeaf
from shoal._spaces.leaves import structured, value_parts
from shoal.errors import InvalidActionError, ObservationError
from shoal.remote.bam._leaf_numbers import (
    action_array,
    action_floats,
    action_integers,
    is_integer,
    observation_array,
    observation_floats,
)
from shoal.remote.bam._messages import GymAction, MessageError, read_json, write_json

__all__ = ["PARTS", "ActionCodec", "ObservationCodec", "read_info"]

PARTS = "observation_parts"
"""The key of ``info`` under which parts of an observation that have no fixed shape travel."""

Array = npt.NDArray[Any]


class ActionCodec:
    """Between actions of a space and :class:`GymAction`.

    Leaves of an integer dtype (Discrete, MultiDiscrete, MultiBinary, and Box of integers) make up
    ``discrete_action``, the others ``continuous_action``.

    Raises:
        TypeError: The space has a part of no fixed shape, for which an action has no place.

    Example:
        >>> from gymnasium.spaces import Box, Dict, Discrete
        >>> codec = ActionCodec(Dict(gear=Discrete(5), push=Box(-1, 1, (2,))))
        >>> codec.encode({"gear": 3, "push": [0.5, -1]}, ns="0")
        GymAction(ns='0', discrete_action=[3], continuous_action=[0.5, -1.0])
    """

    def __init__(self, space: Space[Any]) -> None:
        self._layout = _checked_layout(space, "action")
        if self._layout.objects:
            part = self._layout.objects[0]
            raise TypeError(
                f"actions{part.path}: {part.space} has no fixed shape, and cannot be sent as "
                "numbers"
            )
        self._sizes = {True: 0, False: 0}
        for leaf in self._layout.leaves:
            self._sizes[is_integer(leaf)] += prod(leaf.shape)

    def encode(self, action: Any, ns: str = "") -> GymAction:
        """The message that carries an action.

        Raises:
            InvalidActionError: It does not fit the space, or is not finite.
            ActionTypeError: It has another kind of number than the space.
        """
        message = GymAction(ns=ns)
        for leaf, value in value_parts(self._layout, action, InvalidActionError, "actions"):
            assert isinstance(leaf, Leaf)  # there are no others
            if is_integer(leaf):
                message.discrete_action += action_integers(leaf, value)
            else:
                message.continuous_action += action_floats(leaf, value)
        return message

    def decode(self, message: GymAction) -> Any:
        """The action that a message carries.

        Raises:
            MessageError: It has another number of numbers, or one that the space has not.
        """
        integers, floats = message.discrete_action, message.continuous_action
        for kind, found, wanted in (
            ("discrete", len(integers), self._sizes[True]),
            ("continuous", len(floats), self._sizes[False]),
        ):
            if found != wanted:
                raise MessageError(
                    f"{kind}_action: got {found} numbers, expected {wanted} ({self._layout.space})"
                )
        arrays = []
        taken = {True: 0, False: 0}
        for leaf in self._layout.leaves:
            kind_of = is_integer(leaf)
            start = taken[kind_of]
            taken[kind_of] = end = start + prod(leaf.shape)
            numbers: list[Any] = (integers if kind_of else floats)[start:end]
            try:
                arrays.append(action_array(leaf, numbers))
            except (InvalidActionError, OverflowError) as error:
                raise MessageError(str(error)) from error
        return _whole(self._layout, iter(arrays), iter(()))


class ObservationCodec:
    """Between observations of a space and the ``observation`` and ``info`` of a feedback.

    Parts of no fixed shape (Text, Sequence, Graph and the like) travel in the info, as a list under
    :data:`PARTS` of what ``to_jsonable`` of their space makes of them.
    """

    def __init__(self, space: Space[Any]) -> None:
        self._layout = _checked_layout(space, "observation")
        self._size = sum(prod(leaf.shape) for leaf in self._layout.leaves)

    def encode(
        self, observation: Any, info: dict[str, Any] | None = None
    ) -> tuple[list[float], str]:
        """The numbers and the info of a feedback with this observation.

        Raises:
            ObservationError: It does not fit the space, or has an integer beyond 2**53.
        """
        info = dict(info or {})
        numbers: list[float] = []
        objects = []
        for part, value in value_parts(self._layout, observation, ObservationError, "observation"):
            if isinstance(part, Leaf):
                numbers += observation_floats(part, value)
            else:
                objects.append(part.space.to_jsonable([value])[0])
        if objects:
            info[PARTS] = objects
        return numbers, write_json(info).decode() if info else ""

    def decode(self, numbers: list[float], info: str = "") -> tuple[Any, dict[str, Any]]:
        """The observation and the rest of the info.

        Raises:
            ObservationError: The numbers are not of this space.
            MessageError: The info is not a JSON object.
        """
        told = read_info(info)
        return self.read(numbers, told), told

    def read(self, numbers: list[float], told: dict[str, Any]) -> Any:
        """The observation; those of its parts that are in the info are taken out of it.

        Raises:
            ObservationError: The numbers are not of this space.
        """
        if len(numbers) != self._size:
            raise ObservationError(
                f"observation: got {len(numbers)} numbers, expected {self._size} "
                f"({self._layout.space})"
            )
        flat = np.array(numbers, np.float64)
        arrays = []
        start = 0
        for leaf in self._layout.leaves:
            end = start + prod(leaf.shape)
            arrays.append(observation_array(leaf, flat[start:end]))
            start = end
        return _whole(self._layout, iter(arrays), iter(self._objects(told)))

    def _objects(self, told: dict[str, Any]) -> list[Any]:
        wanted = self._layout.objects
        if not wanted:
            return []
        found = told.pop(PARTS, None)
        if not isinstance(found, list) or len(found) != len(wanted):
            raise ObservationError(
                f"info: expected a list of {len(wanted)} under {PARTS!r}, got {found!r}"
            )
        objects = []
        for part, item in zip(wanted, found, strict=True):
            try:
                objects.append(part.space.from_jsonable([item])[0])
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise ObservationError(
                    f"observation{part.path}: {error}, expected {part.space}"
                ) from error
        return objects


def read_info(text: str) -> dict[str, Any]:
    """The info of a feedback.

    Raises:
        MessageError: It is not a JSON object.
    """
    info = read_json(text) if text else {}
    if not isinstance(info, dict):
        raise MessageError(f"info: expected a JSON object, got {text[:60]!r}")
    return info


def _checked_layout(space: Space[Any], what: str) -> Layout:
    layout = Layout.of(space)
    for leaf in layout.leaves:
        if leaf.dtype.kind not in "biuf" or leaf.dtype.itemsize > 8:
            raise TypeError(f"{what}{leaf.path}: numbers of {leaf.dtype} cannot be sent")
    return layout


def _whole(layout: Layout, arrays: Iterator[Array], objects: Iterator[Any]) -> Any:
    """The value of a space that has these leaves."""

    def part_of(part: Leaf | ObjectLeaf) -> Any:
        if isinstance(part, ObjectLeaf):
            return next(objects)
        array = next(arrays)
        return array if part.low is None else array[()]  # Discrete has scalars, Box 0-d arrays

    return structured(layout, part_of)
