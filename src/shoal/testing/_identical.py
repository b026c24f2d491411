"""Bit-for-bit comparison of batches."""

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
    prefix = f"{where}: " if where else ""
    if isinstance(expected, Mapping):
        assert isinstance(got, Mapping), f"{prefix}{type(got).__name__}, expected a dict"
        assert list(got) == list(expected), f"{prefix}keys {list(got)}, expected {list(expected)}"
        for key in expected:
            assert_identical(got[key], expected[key], f"{where}[{key!r}]")
    elif isinstance(expected, tuple | list):
        assert type(got) is type(expected), f"{prefix}{type(got)}, expected {type(expected)}"
        assert len(got) == len(expected), f"{prefix}length {len(got)}, expected {len(expected)}"
        for index, (got_item, expected_item) in enumerate(zip(got, expected, strict=True)):
            assert_identical(got_item, expected_item, f"{where}[{index}]")
    elif isinstance(expected, np.ndarray):
        _assert_identical_arrays(got, expected, where, prefix)
    else:
        assert type(got) is type(expected), f"{prefix}{type(got)}, expected {type(expected)}"
        both_nan = got != got and expected != expected
        assert both_nan or got == expected, f"{prefix}{got!r}, expected {expected!r}"


def _assert_identical_arrays(got: Any, expected: Any, where: str, prefix: str) -> None:
    assert isinstance(got, np.ndarray), f"{prefix}{type(got).__name__}, expected an array"
    assert got.dtype == expected.dtype, f"{prefix}dtype {got.dtype}, expected {expected.dtype}"
    assert got.shape == expected.shape, f"{prefix}shape {got.shape}, expected {expected.shape}"
    if expected.dtype == object:
        assert_identical(list(got.flat), list(expected.flat), where)
    else:
        assert got.tobytes() == expected.tobytes(), f"{prefix}{got}, expected {expected}"
