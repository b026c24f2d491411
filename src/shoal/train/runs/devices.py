"""Where a run computes."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import torch

__all__ = ["choose_device", "fast_matmul"]


@contextmanager
def fast_matmul(device: str) -> Iterator[None]:
    """Let a GPU multiply matrices with the precision that its fast units have (TF32)."""
    before = torch.get_float32_matmul_precision()
    if torch.device(device).type == "cuda":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def choose_device(wanted: str | int | None) -> str:
    """A device that is there: the one that is wanted, or the nearest to it, with a warning.

    A config or a script that was written for a machine with GPUs runs on one without.

    Args:
        wanted: Such as ``"cuda:1"``, a number for that one, ``"cpu"``; None for a GPU if there is
            one.

    >>> choose_device("cpu")
    'cpu'
    """
    count = torch.cuda.device_count()
    if wanted is None:
        return "cuda" if count else "cpu"
    name = f"cuda:{wanted}" if isinstance(wanted, int) else wanted
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device must be cpu, cuda, cuda:1 and the like, got {name!r}") from error
    if device.type != "cuda" or (device.index or 0) < count:
        return name
    found = "cuda" if count else "cpu"
    there = f"{count} GPUs" if count else "no GPU that torch can use"
    warnings.warn(f"there is no {name}, as there is {there}: training on {found}", stacklevel=3)
    return found
