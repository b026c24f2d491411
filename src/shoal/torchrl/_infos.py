"""Conversion of infos to arrays with one row per slot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.vector.utils import create_empty_array

from shoal._types import ColumnInfos, RawInfos
from shoal.vector._infos import format_infos

__all__ = ["InfoColumns"]


class InfoColumns:
    """Converter of selected infos to arrays.

    Args:
        info_spaces: The space of each info's values by name; a Dict space for a nested info.

    >>> columns = InfoColumns({"speed": spaces.Box(0.0, 9.0, ())})
    >>> columns.of(([(1, {"speed": 0.5, "word": "ignored"})], None), rows=2)
    {'speed': array([0. , 0.5], dtype=float32)}
    """

    def __init__(self, info_spaces: Mapping[str, Space[Any]]) -> None:
        self.spaces = dict(info_spaces)

    def of(self, raw: RawInfos | ColumnInfos | None, rows: int) -> dict[str, Any]:
        """Return the arrays, with zeros for slots without the info."""
        if not self.spaces:
            return {}
        infos = format_infos(raw, rows, "dict")
        return {
            name: _column(space, infos.get(name), rows, f"info {name!r}")
            for name, space in self.spaces.items()
        }


def _column(space: Space[Any], values: Any, rows: int, path: str) -> Any:
    if values is None:
        return create_empty_array(space, rows)
    if isinstance(space, spaces.Dict) and isinstance(values, dict):
        return {
            key: _column(part, values.get(key), rows, f"{path}[{key!r}]")
            for key, part in space.spaces.items()
        }
    column: npt.NDArray[Any] = np.asarray(values)
    if column.dtype.kind not in "biuf" or column.shape != (rows, *(space.shape or ())):
        raise ValueError(f"{path} does not fit {space}: got {values!r} for {rows} slots")
    return column.astype(space.dtype)
