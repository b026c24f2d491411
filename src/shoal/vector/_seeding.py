"""Derivation of the seeds of the slots."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, SupportsInt

import numpy as np
import numpy.typing as npt

from shoal.errors import SeedError

__all__ = ["Seed", "Seeding", "slot_seeds"]

Seed = SupportsInt | Sequence[SupportsInt | None] | npt.NDArray[np.integer[Any]] | None
Seeding = Literal["adjacent", "independent", "counter"]


def slot_seeds(seed: Seed, num_envs: int, seeding: Seeding = "adjacent") -> list[int | None]:
    """Return the seed of each slot.

    Args:
        seed: None for no seeds, one integer for the whole vector, or one integer or None for each
            slot.
        num_envs: Number of slots.
        seeding: How one integer becomes many. ``"adjacent"`` counts up from it, as Gymnasium does,
            so that two runs with seeds 1 and 2 share all but one of their seeds.
            ``"independent"`` derives unrelated seeds with :class:`numpy.random.SeedSequence`.
            ``"counter"`` counts up as well, for the counter-based generator of kernels, which makes
            independent streams from adjacent seeds.

    >>> slot_seeds(np.int64(7), 3)
    [7, 8, 9]
    >>> slot_seeds([5, None], 2)
    [5, None]
    """
    if seed is None:
        return [None] * num_envs
    if _is_integer(seed):
        first = _checked(seed, "seed")
        if seeding == "independent":
            return _distinct_words(np.random.SeedSequence(first), num_envs)
        return [first + slot for slot in range(num_envs)]  # type: ignore[operator]
    if not isinstance(seed, Sequence | np.ndarray) or isinstance(seed, str | bytes):
        raise SeedError(
            f"seed must be an integer, None, or one of these for each slot, got {seed!r}"
        )
    if len(seed) != num_envs:
        raise SeedError(
            "If seeds are passed as a list the length must match "
            f"num_envs={num_envs} but got length={len(seed)}."
        )
    return [_checked(value, f"the seed of slot {slot}") for slot, value in enumerate(seed)]


def _distinct_words(sequence: np.random.SeedSequence, count: int) -> list[int | None]:
    """Return the first ``count`` distinct 32-bit words of a sequence.

    Wider words are not used because some simulators accept only 32-bit seeds.
    """
    length = count
    while True:
        words = dict.fromkeys(sequence.generate_state(length).tolist())
        if len(words) >= count:
            return list(words)[:count]
        length += count


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _checked(value: Any, what: str) -> int | None:
    if value is None:
        return None
    if not _is_integer(value) or value < 0:
        raise SeedError(f"{what} must be a non-negative integer or None, got {value!r}")
    return int(value)
