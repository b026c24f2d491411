"""Comparing batches bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["assert_identical"]


def assert_identical(got: Any, expected: Any, where: str = "") -> None:
    """Fail unless two values have the same structure, types, dtypes, shapes and bits.

    NaN equals NaN, and arrays of objects are compared element by element.

    >>> assert_identical({"a": np.zeros(2)}, {"a": np.zeros(2)})
    >>> assert_identical({"a": np.zeros(2)}, {"a": np.zeros(2, np.float32)})
    Traceback (most recent call last):
        ...
    AssertionError: ['a']: dtype float64, expected float32
    """
    place = f"{where}: " if where else ""
    if isinstance(expected, Mapping):
        assert isinstance(got, Mapping), f"{place}{type(got).__name__}, expected a dict"
        assert list(got) == list(expected), f"{place}keys {list(got)}, expected {list(expected)}"
        for key in expected:
            assert_identical(got[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, tuple | list):
        assert type(got) is type(expected), f"{place}{type(got)}, expected {type(expected)}"
        assert len(got) == len(expected), f"{place}length {len(got)}, expected {len(expected)}"
        for k, (one, other) in enumerate(zip(got, expected, strict=True)):
            assert_identical(one, other, f"{where}[{k}]")
    elif isinstance(expected, np.ndarray):
        _assert_identical_arrays(got, expected, where, place)
    else:
        assert type(got) is type(expected), f"{place}{type(got)}, expected {type(expected)}"
        both_nan = got != got and expected != expected
        assert both_nan or got == expected, f"{place}{got!r}, expected {expected!r}"


def _assert_identical_arrays(got: Any, expected: Any, where: str, place: str) -> None:
    assert isinstance(got, np.ndarray), f"{place}{type(got).__name__}, expected an array"
    assert got.dtype == expected.dtype, f"{place}dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{place}shape {got.shape}, expected {expected.shape}"
    if expected.dtype == object:
        assert_identical(list(got.flat), list(expected.flat), where)
    else:
        assert got.tobytes() == expected.tobytes(), f"{place}{got}, expected {expected}"
