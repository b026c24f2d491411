"""The tensors of a message: which there are, in which order, and how many bytes they have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces import Layout
from shoal.errors import ObservationError, ProtocolError
from shoal.remote._value_codec import dtype_code
from shoal.remote._wire import SOME_SLOTS, Header

__all__ = ["FLAGS", "REWARDS", "SLOTS", "Segments", "check_flags", "checked_slots"]

Array = npt.NDArray[Any]

SLOTS = np.dtype("<i8")
REWARDS = np.dtype("<f8")
FLAGS = np.dtype("?")


class Segments:
    """The tensors that belong to the rows of a layout, after those that all rows have.

    Args:
        layout: Of actions or observations.
        before: Dtypes of the columns that stand before the leaves.
    """

    def __init__(self, layout: Layout, before: Sequence[np.dtype[Any]] = ()) -> None:
        self.layout = layout
        self._fields: list[tuple[np.dtype[Any], tuple[int, ...]]] = [
            (dtype, ()) for dtype in before
        ]
        for leaf in layout.leaves:
            dtype_code(leaf.dtype)  # raises where it does not travel
            self._fields.append((leaf.dtype, leaf.shape))
        self.row_bytes = sum(
            dtype.itemsize * int(np.prod(shape, dtype=np.int64)) for dtype, shape in self._fields
        )

    def bytes_of(self, rows: int, flags: int) -> int:
        """How many bytes so many rows have."""
        return rows * (self.row_bytes + (SLOTS.itemsize if flags & SOME_SLOTS else 0))

    def check(self, header: Header, num_envs: int) -> None:
        """Refuse a body of another size than its rows have, before there is room made for it."""
        every = not header.flags & SOME_SLOTS
        fits = header.rows == num_envs if every else 1 <= header.rows <= num_envs
        if not fits or header.body != self.bytes_of(header.rows, header.flags):
            raise ProtocolError(
                f"{header.body} bytes are announced for {header.rows} rows, expected "
                f"{self.bytes_of(header.rows, header.flags)} for at most {num_envs} slots"
            )

    def made_of(self, arrays: Sequence[Any], rows: int) -> list[Array]:
        """These columns, as they are sent.

        Raises:
            ObservationError: One is not of the dtype and shape that both ends have agreed on.
        """
        return [
            _column(array, dtype, (rows, *shape))
            for array, (dtype, shape) in zip(arrays, self._fields, strict=True)
        ]

    def room(self, rows: int) -> list[Array]:
        """Arrays for so many rows."""
        return [np.empty((rows, *shape), dtype) for dtype, shape in self._fields]


def _column(given: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    array = np.asarray(given)
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ObservationError(
            f"got an array of dtype {array.dtype} and shape {array.shape}, expected {dtype} and "
            f"{shape}"
        )
    return np.ascontiguousarray(array, dtype)


def check_flags(arrays: Sequence[Array]) -> None:
    """Refuse bytes from the other end that are no booleans: NumPy trusts that it has none.

    Raises:
        ProtocolError: There are some.
    """
    for array in arrays:
        if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
            raise ProtocolError("a flag is neither true nor false")


def checked_slots(slots: npt.NDArray[np.int64], num_envs: int) -> npt.NDArray[np.int64]:
    """Slots that have come from the other end.

    Raises:
        ProtocolError: There are none of these numbers, or they repeat.
    """
    is_known = slots.ndim == 1 and bool(((slots >= 0) & (slots < num_envs)).all())
    if not is_known or len(np.unique(slots)) != len(slots):
        raise ProtocolError(f"there are no slots {slots.tolist()} among {num_envs}")
    return slots
