"""Finding numbers that are none."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

__all__ = ["not_finite"]


def not_finite(
    name: str, values: Any, *, check_inf: bool = True
) -> list[tuple[str, Literal["inf", "nan"]]]:
    """Which arrays in a structure of dicts, tuples and arrays hold NaN or infinity, by their names.

    >>> not_finite("observations", {"position": np.zeros(2), "speed": np.array([np.nan, 1])})
    [('observations.speed', 'nan')]
    """
    if isinstance(values, dict | tuple):
        items = values.items() if isinstance(values, dict) else enumerate(values)
        return [
            found
            for key, value in items
            for found in not_finite(f"{name}.{key}", value, check_inf=check_inf)
        ]
    if not isinstance(values, np.ndarray | np.generic | list | int | float):
        raise TypeError(f"Unsupported type of {name}: {type(values)}.")
    array = np.asarray(values)
    # One look at each number for the usual case, in which all is well.
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return []
    found: list[tuple[str, Literal["inf", "nan"]]] = []
    if check_inf and np.isinf(array).any():
        found.append((name, "inf"))
    if np.isnan(array).any():
        found.append((name, "nan"))
    return found
