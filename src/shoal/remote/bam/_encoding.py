"""Conversion between actions or observations of a space and numbers in GymAPI messages.

Leaves follow the order of the space, and the elements of a leaf are in C order. The conversion is
lossless: a number that would be rounded raises an error.
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
"""The key of the info with the parts of an observation that have no fixed shape."""

Array = npt.NDArray[Any]


class ActionCodec:
    """Converts between actions of a space and :class:`GymAction`.

    Leaves of an integer dtype (Discrete, MultiDiscrete, MultiBinary, and Box of integers) are in
    ``discrete_action``, others in ``continuous_action``.

    Raises:
        TypeError: The space has a part without fixed shape, which is not supported.

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
        """Encode an action.

        Raises:
            InvalidActionError: The action is not in the space, or not finite.
            ActionTypeError: The dtype does not match that of the space.
        """
        message = GymAction(ns=ns)
        for leaf, value in value_parts(self._layout, action, InvalidActionError, "actions"):
            assert isinstance(leaf, Leaf)  # the space has no other parts
            if is_integer(leaf):
                message.discrete_action += action_integers(leaf, value)
            else:
                message.continuous_action += action_floats(leaf, value)
        return message

    def decode(self, message: GymAction) -> Any:
        """Decode an action.

        Raises:
            MessageError: The message has too many or too few numbers, or the action is not in the
                space.
        """
        integers, floats = message.discrete_action, message.continuous_action
        for kind, count, expected in (
            ("discrete", len(integers), self._sizes[True]),
            ("continuous", len(floats), self._sizes[False]),
        ):
            if count != expected:
                raise MessageError(
                    f"{kind}_action: got {count} numbers, expected {expected} "
                    f"({self._layout.space})"
                )
        arrays = []
        used = {True: 0, False: 0}
        for leaf in self._layout.leaves:
            is_int = is_integer(leaf)
            start = used[is_int]
            used[is_int] = end = start + prod(leaf.shape)
            numbers: list[Any] = (integers if is_int else floats)[start:end]
            try:
                arrays.append(action_array(leaf, numbers))
            except (InvalidActionError, OverflowError) as error:
                raise MessageError(str(error)) from error
        return _assemble(self._layout, iter(arrays), iter(()))


class ObservationCodec:
    """Converts between observations of a space and the fields of a feedback.

    Parts without fixed shape (such as Text, Sequence and Graph) are converted by their space's
    ``to_jsonable`` and sent in the info, as a list under :data:`PARTS`.
    """

    def __init__(self, space: Space[Any]) -> None:
        self._layout = _checked_layout(space, "observation")
        self._size = sum(prod(leaf.shape) for leaf in self._layout.leaves)

    def encode(
        self, observation: Any, info: dict[str, Any] | None = None
    ) -> tuple[list[float], str]:
        """Encode an observation as the numbers and the info of a feedback.

        Raises:
            ObservationError: The observation does not match the space, or contains an integer
                beyond 2**53.
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
        """Decode an observation; return it and the rest of the info.

        Raises:
            ObservationError: The numbers do not match the space.
            MessageError: The info is not a JSON object.
        """
        infos = read_info(info)
        return self.read(numbers, infos), infos

    def read(self, numbers: list[float], info: dict[str, Any]) -> Any:
        """Decode an observation, and remove its parts from the info.

        Raises:
            ObservationError: The numbers do not match the space.
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
        return _assemble(self._layout, iter(arrays), iter(self._objects(info)))

    def _objects(self, info: dict[str, Any]) -> list[Any]:
        expected = self._layout.objects
        if not expected:
            return []
        items = info.pop(PARTS, None)
        if not isinstance(items, list) or len(items) != len(expected):
            raise ObservationError(
                f"info: expected a list of {len(expected)} values under {PARTS!r}, got {items!r}"
            )
        objects = []
        for part, item in zip(expected, items, strict=True):
            try:
                objects.append(part.space.from_jsonable([item])[0])
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise ObservationError(
                    f"observation{part.path}: {error}, expected {part.space}"
                ) from error
        return objects


def read_info(text: str) -> dict[str, Any]:
    """Decode the info of a feedback.

    Raises:
        MessageError: The text is not a JSON object.
    """
    info = read_json(text) if text else {}
    if not isinstance(info, dict):
        raise MessageError(f"info: expected a JSON object, got {text[:60]!r}")
    return info


def _checked_layout(space: Space[Any], what: str) -> Layout:
    layout = Layout.of(space)
    for leaf in layout.leaves:
        if leaf.dtype.kind not in "biuf" or leaf.dtype.itemsize > 8:
            raise TypeError(f"{what}{leaf.path}: dtype {leaf.dtype} cannot be sent")
    return layout


def _assemble(layout: Layout, arrays: Iterator[Array], objects: Iterator[Any]) -> Any:
    """Assemble a value of a space from its leaves."""

    def part_of(part: Leaf | ObjectLeaf) -> Any:
        if isinstance(part, ObjectLeaf):
            return next(objects)
        array = next(arrays)
        return array if part.low is None else array[()]  # a scalar for Discrete

    return structured(layout, part_of)
