"""An environment that does nothing: every step of all slots has the same outcome."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["ANSWER_BYTES", "NUM_SLOTS", "OUTCOME", "REQUEST_BYTES", "Actions", "Outcome", "step"]

NUM_SLOTS = 64
_OBSERVATION_SIZE = 4

_HEADER_BYTES = 52
REQUEST_BYTES = _HEADER_BYTES + NUM_SLOTS * 8
"""The size of a message with an action for every slot."""
ANSWER_BYTES = _HEADER_BYTES + NUM_SLOTS * (4 * _OBSERVATION_SIZE + 8 + 1 + 1)
"""The size of a message with an observation, a reward and two flags for every slot."""

Actions: TypeAlias = NDArray[np.int64]


class Outcome(NamedTuple):
    """The results of a step of all slots."""

    observations: NDArray[np.float32]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]


def _outcome() -> Outcome:
    """Draw numbers with as many digits as those of real environments, which make JSON longer."""
    rng = np.random.default_rng(0)
    return Outcome(
        rng.standard_normal((NUM_SLOTS, _OBSERVATION_SIZE), np.float32),
        rng.standard_normal(NUM_SLOTS),
        rng.random(NUM_SLOTS) < 0.1,
        rng.random(NUM_SLOTS) < 0.1,
    )


OUTCOME = _outcome()


def step(actions: Actions) -> Outcome:
    """Step all slots."""
    if actions.shape != (NUM_SLOTS,):
        raise ValueError(f"actions have the shape {actions.shape}; expected ({NUM_SLOTS},)")
    return OUTCOME
