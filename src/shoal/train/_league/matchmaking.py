"""Draws opponents by prioritised fictitious self-play: whom it is most worth to play against."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

__all__ = ["Kind", "Matchmaker", "pfsp_weights"]

Kind = Literal["hard", "variance", "even"]


def pfsp_weights(win_rates: npt.ArrayLike, kind: Kind) -> npt.NDArray[np.float64]:
    """With which probability each opponent is to be drawn.

    Args:
        win_rates: Of the player that is to learn, against each opponent.
        kind: ``hard`` prefers those it loses to, (1 - p)^2; ``variance`` those that are as good as
            it, p (1 - p); ``even`` nobody. Where nobody would be left, all are alike.

    Example:
        >>> pfsp_weights([0.0, 0.5, 1.0], "hard").round(2).tolist()
        [0.8, 0.2, 0.0]
        >>> pfsp_weights([0.0, 0.5, 1.0], "variance").tolist()
        [0.0, 1.0, 0.0]
    """
    rates = np.asarray(win_rates, np.float64)
    if rates.ndim != 1 or not rates.size:
        raise ValueError(f"win_rates must be a list of at least one, got {win_rates!r}")
    if not np.all((rates >= 0) & (rates <= 1)):
        raise ValueError(f"win_rates must lie between 0 and 1, got {rates.tolist()}")
    if kind not in get_args(Kind):
        raise ValueError(f"kind must be one of {', '.join(get_args(Kind))}, got {kind!r}")
    lost = 1 - rates
    weights = {"hard": lost**2, "variance": rates * lost, "even": np.ones_like(rates)}[kind]
    greatest = weights.max()
    if greatest == 0:
        weights, greatest = np.ones_like(rates), 1.0
    weights = weights / greatest  # else the sum could be too small to divide by
    shares: npt.NDArray[np.float64] = weights / weights.sum()
    return shares


class Matchmaker:
    """Draws opponents, by the win rates against them.

    Args:
        kind: Whom it prefers, as :func:`pfsp_weights` has it.
        latest_share: The share of episodes that are played against the player itself as it is.

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
        """The opponent of an episode.

        Args:
            rng: Where the randomness is from. What is drawn depends on it and on nothing else that
                is not given.
            win_rates: Against each of the others, by their names; may be empty.
            latest: The name of the player itself.
        """
        if rng.random() < self.latest_share or not win_rates:
            return latest
        weights = pfsp_weights(list(win_rates.values()), self.kind)
        return list(win_rates)[int(rng.choice(len(weights), p=weights))]
