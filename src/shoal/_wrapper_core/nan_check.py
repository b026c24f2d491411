"""Detection of NaN and infinity."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

__all__ = ["find_non_finite"]


def find_non_finite(
    name: str, values: Any, *, check_inf: bool = True
) -> list[tuple[str, Literal["inf", "nan"]]]:
    """Return the names of the arrays in nested dicts and tuples that contain NaN or infinity.

    >>> find_non_finite("observations", {"position": np.zeros(2), "speed": np.array([np.nan, 1])})
    [('observations.speed', 'nan')]
    """
    if isinstance(values, dict | tuple):
        items = values.items() if isinstance(values, dict) else enumerate(values)
        return [
            problem
            for key, value in items
            for problem in find_non_finite(f"{name}.{key}", value, check_inf=check_inf)
        ]
    if not isinstance(values, np.ndarray | np.generic | list | int | float):
        raise TypeError(f"Unsupported type of {name}: {type(values)}.")
    array = np.asarray(values)
    # A single pass over the array in the common case.
    if array.dtype.kind not in "fc" or np.isfinite(array).all():
        return []
    problems: list[tuple[str, Literal["inf", "nan"]]] = []
    if check_inf and np.isinf(array).any():
        problems.append((name, "inf"))
    if np.isnan(array).any():
        problems.append((name, "nan"))
    return problems
