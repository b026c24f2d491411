"""Matchmaking by prioritised fictitious self-play (PFSP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

__all__ = ["Kind", "Matchmaker", "pfsp_weights"]

Kind = Literal["hard", "variance", "even"]


def pfsp_weights(win_rates: npt.ArrayLike, kind: Kind) -> npt.NDArray[np.float64]:
    """Return the probability with which each opponent is drawn.

    Args:
        win_rates: Win rates of the learning player against each opponent.
        kind: The weighting of a win rate p: ``hard`` prefers opponents to which the player loses,
            (1 - p)^2; ``variance`` prefers opponents of equal strength, p (1 - p); ``even`` weights
            all opponents equally. If all weights are 0, the distribution is uniform.

    Example:
        >>> pfsp_weights([0.0, 0.5, 1.0], "hard").round(2).tolist()
        [0.8, 0.2, 0.0]
        >>> pfsp_weights([0.0, 0.5, 1.0], "variance").tolist()
        [0.0, 1.0, 0.0]
    """
    rates = np.asarray(win_rates, np.float64)
    if rates.ndim != 1 or not rates.size:
        raise ValueError(f"win_rates must be a non-empty list, got {win_rates!r}")
    if not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"win_rates must lie between 0 and 1, got {rates.tolist()}")
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}")
    losses = 1 - rates
    weights = {"hard": losses**2, "variance": rates * losses, "even": np.ones_like(rates)}[kind]
    greatest = weights.max()
    if greatest == 0:
        weights, greatest = np.ones_like(rates), 1.0
    weights = weights / greatest  # avoids division by a subnormal sum
    probabilities: npt.NDArray[np.float64] = weights / weights.sum()
    return probabilities


class Matchmaker:
    """Random selection of opponents by win rate.

    Args:
        kind: The weighting: see :func:`pfsp_weights`.
        latest_share: The share of episodes played against the player's current self.

    Example:
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> Matchmaker("hard", latest_share=0).draw(rng, {"easy": 1.0, "hard": 0.3}, "main")
        'hard'
    """

    def __init__(self, kind: Kind = "hard", latest_share: float = 0.2) -> None:
        if kind not in get_args(Kind):
            raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}")
        if not 0 <= latest_share <= 1:
            raise ValueError(f"latest_share must lie between 0 and 1, got {latest_share}")
        self.kind: Kind = kind
        self.latest_share = latest_share

    def draw(self, rng: np.random.Generator, win_rates: Mapping[str, float], latest: str) -> str:
        """Draw the opponent of an episode.

        Args:
            rng: The random generator.
            win_rates: Win rates against the other players by name; may be empty.
            latest: The name of the player's current self.
        """
        if rng.random() < self.latest_share or not win_rates:
            return latest
        weights = pfsp_weights(list(win_rates.values()), self.kind)
        return list(win_rates)[int(rng.choice(len(weights), p=weights))]
