"""The tensors of a message: their order, dtypes and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces import Layout
from shoal.errors import ObservationError, ProtocolError
from shoal.remote._value_codec import dtype_code
from shoal.remote._wire import SOME_SLOTS, Header

__all__ = [
    "BOOL_DTYPE",
    "REWARD_DTYPE",
    "SLOT_DTYPE",
    "BodyFormat",
    "check_booleans",
    "check_slots",
]

Array = npt.NDArray[Any]

SLOT_DTYPE = np.dtype("<i8")
REWARD_DTYPE = np.dtype("<f8")
BOOL_DTYPE = np.dtype("?")


class BodyFormat:
    """The tensors of a message: fixed columns, then the leaves of a layout.

    Args:
        layout: The layout of actions or observations.
        columns: Dtypes of the columns before the leaves.
    """

    def __init__(self, layout: Layout, columns: Sequence[np.dtype[Any]] = ()) -> None:
        self.layout = layout
        self._fields: list[tuple[np.dtype[Any], tuple[int, ...]]] = [
            (dtype, ()) for dtype in columns
        ]
        for leaf in layout.leaves:
            dtype_code(leaf.dtype)  # raises if the dtype is not supported
            self._fields.append((leaf.dtype, leaf.shape))
        self.row_bytes = sum(
            dtype.itemsize * int(np.prod(shape, dtype=np.int64)) for dtype, shape in self._fields
        )

    def size_of(self, rows: int, flags: int) -> int:
        """Return the size of a body in bytes."""
        return rows * (self.row_bytes + (SLOT_DTYPE.itemsize if flags & SOME_SLOTS else 0))

    def check_header(self, header: Header, num_envs: int) -> None:
        """Check the announced size of a body before memory is allocated for it.

        Raises:
            ProtocolError: The size does not match the number of rows.
        """
        all_slots = not header.flags & SOME_SLOTS
        fits = header.rows == num_envs if all_slots else 1 <= header.rows <= num_envs
        if not fits or header.body != self.size_of(header.rows, header.flags):
            raise ProtocolError(
                f"a message has {header.rows} rows in {header.body} bytes, expected "
                f"{self.size_of(header.rows, header.flags)} bytes and at most {num_envs} rows"
            )

    def to_columns(self, arrays: Sequence[Any], rows: int) -> list[Array]:
        """Convert arrays to contiguous columns of the agreed dtypes.

        Raises:
            ObservationError: An array does not have the agreed dtype or shape.
        """
        return [
            _column(array, dtype, (rows, *shape))
            for array, (dtype, shape) in zip(arrays, self._fields, strict=True)
        ]

    def allocate(self, rows: int) -> list[Array]:
        """Allocate uninitialized columns."""
        return [np.empty((rows, *shape), dtype) for dtype, shape in self._fields]


def _column(values: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> Array:
    array = np.asarray(values)
    if array.shape != shape or not np.can_cast(array.dtype, dtype, "same_kind"):
        raise ObservationError(
            f"got an array of dtype {array.dtype} and shape {array.shape}, expected {dtype} and "
            f"{shape}"
        )
    return np.ascontiguousarray(array, dtype)


def check_booleans(arrays: Sequence[Array]) -> None:
    """Check that boolean arrays contain only 0 and 1, as NumPy assumes.

    Raises:
        ProtocolError: They contain other bytes.
    """
    for array in arrays:
        if array.dtype == np.bool_ and (array.view(np.uint8) > 1).any():
            raise ProtocolError("a boolean is neither 0 nor 1")


def check_slots(slots: npt.NDArray[np.int64], num_envs: int) -> npt.NDArray[np.int64]:
    """Check slot numbers from the other end, and return them.

    Raises:
        ProtocolError: A number is out of range or repeated.
    """
    in_range = slots.ndim == 1 and bool(((slots >= 0) & (slots < num_envs)).all())
    if not in_range or len(np.unique(slots)) != len(slots):
        raise ProtocolError(f"slots must be distinct and in [0, {num_envs}), got {slots.tolist()}")
    return slots
