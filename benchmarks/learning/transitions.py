"""Random transitions from which all contenders learn."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from shoal._bench.contenders.base import SEED

__all__ = ["CHOICES", "NUMBERS", "OBSERVATIONS", "Transitions", "make_transitions"]

CHOICES = spaces.Discrete(8)
NUMBERS = spaces.Box(-1.0, 1.0, (4,), np.float32)
OBSERVATIONS = spaces.Box(-np.inf, np.inf, (18,), np.float32)


class Transitions(NamedTuple):
    """Arrays with one row per transition."""

    observations: npt.NDArray[np.float32]
    actions: npt.NDArray[np.int64] | npt.NDArray[np.float32]
    rewards: npt.NDArray[np.float32]
    next_observations: npt.NDArray[np.float32]
    terminated: npt.NDArray[np.bool_]


def make_transitions(action_space: spaces.Discrete | spaces.Box, count: int) -> Transitions:
    """Draw transitions in the shape of hockey's; one in a hundred ends an episode."""
    rng = np.random.default_rng(SEED)
    shape = count, *OBSERVATIONS.shape
    actions: npt.NDArray[np.int64] | npt.NDArray[np.float32]
    if isinstance(action_space, spaces.Discrete):
        actions = rng.integers(action_space.n, size=count)
    else:
        actions = rng.uniform(-1.0, 1.0, (count, *action_space.shape)).astype(np.float32)
    return Transitions(
        rng.standard_normal(shape, np.float32),
        actions,
        rng.standard_normal(count, np.float32),
        rng.standard_normal(shape, np.float32),
        rng.random(count) < 0.01,
    )
