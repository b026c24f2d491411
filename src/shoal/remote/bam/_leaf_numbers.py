"""Lossless conversion between the array of one leaf and a list of numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces import Leaf
from shoal.errors import ActionTypeError, InvalidActionError, ObservationError

__all__ = [
    "action_array",
    "action_floats",
    "action_integers",
    "is_integer",
    "observation_array",
    "observation_floats",
]

_MAX_EXACT = 2**53  # larger integers may not be exact as 64-bit floats

Array = npt.NDArray[Any]


def is_integer(leaf: Leaf) -> bool:
    """Whether the dtype of a leaf is an integer or boolean one."""
    return leaf.dtype.kind != "f"


def action_integers(leaf: Leaf, value: Any) -> list[int]:
    """Check an action of an integer leaf, and return its elements."""
    array = _shaped(leaf, value, "actions", InvalidActionError)
    if array.dtype.kind not in "biu":
        raise ActionTypeError(f"actions{leaf.path}: got {array.dtype}, expected {leaf.description}")
    numbers: list[int] = [int(number) for number in array.ravel().tolist()]
    action_array(leaf, numbers)
    return numbers


def action_floats(leaf: Leaf, value: Any) -> list[float]:
    """Check an action of a floating-point leaf, and return its elements."""
    array = _shaped(leaf, value, "actions", InvalidActionError)
    if array.dtype.kind not in "biuf":
        raise ActionTypeError(f"actions{leaf.path}: got {array.dtype}, expected {leaf.description}")
    numbers: list[float] = action_array(leaf, array.ravel().tolist()).ravel().tolist()
    return numbers


def action_array(leaf: Leaf, numbers: list[Any]) -> Array:
    """Convert numbers to an action of the leaf, and check that it is in the space."""
    try:
        with np.errstate(over="ignore"):
            array = np.array(numbers, leaf.dtype).reshape(leaf.shape)
    except OverflowError as error:
        raise InvalidActionError(
            f"actions{leaf.path}: {error}, expected {leaf.description}"
        ) from error
    if not is_integer(leaf):
        if not np.isfinite(array).all():
            # A robot must never receive such an action.
            raise InvalidActionError(f"actions{leaf.path}: {numbers} is not finite")
    elif leaf.low is not None and leaf.high is not None:
        flat = array.ravel()
        if (flat < leaf.low.ravel()).any() or (flat > leaf.high.ravel()).any():
            raise InvalidActionError(
                f"actions{leaf.path}: got {numbers}, expected {leaf.description}"
            )
    return array


def observation_floats(leaf: Leaf, value: Any) -> list[float]:
    """Return the elements of an observation of a leaf as exact floats."""
    array = _shaped(leaf, value, "observation", ObservationError)
    if not np.can_cast(array.dtype, leaf.dtype, "same_kind"):
        raise ObservationError(
            f"observation{leaf.path}: got {array.dtype}, expected {leaf.description}"
        )
    array = array.astype(leaf.dtype)
    if is_integer(leaf) and ((array > _MAX_EXACT) | (array < -_MAX_EXACT)).any():
        raise ObservationError(
            f"observation{leaf.path}: an integer beyond 2**53 cannot be sent as a float"
        )
    numbers: list[float] = array.astype(np.float64).ravel().tolist()
    return numbers


def observation_array(leaf: Leaf, numbers: Array) -> Array:
    """Convert floats to an observation of the leaf."""
    with np.errstate(invalid="ignore", over="ignore"):
        array = numbers.astype(leaf.dtype)
    if is_integer(leaf):
        is_exact = (array == numbers) & (np.abs(numbers) <= _MAX_EXACT)
    elif leaf.dtype.itemsize < 8:
        is_exact = np.isinf(array) <= np.isinf(numbers)  # rounding is allowed, overflow is not
    else:
        return array.reshape(leaf.shape)
    if not is_exact.all():
        number = numbers[np.argmin(is_exact)]
        raise ObservationError(f"observation{leaf.path}: got {number}, expected {leaf.description}")
    return array.reshape(leaf.shape)


def _shaped(leaf: Leaf, value: Any, what: str, error: type[Exception]) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as cause:  # lists of different lengths
        raise error(f"{what}{leaf.path}: {cause}, expected {leaf.description}") from cause
    if array.shape != leaf.shape:
        raise error(
            f"{what}{leaf.path}: got shape {array.shape}, expected {leaf.shape} "
            f"({leaf.description})"
        )
    return array
