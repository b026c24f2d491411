"""Reward shaping in hockey: weights of the shaping terms as a function of the episode."""

from __future__ import annotations

from typing import NamedTuple

from shoal.train._config.schema import RewardShaping

__all__ = ["NOT_SHAPED", "Weights", "shaping_weights"]


class Weights(NamedTuple):
    """Factors by which the reward infos are multiplied before they are added to the reward."""

    closeness: float
    touch: float
    direction: float


NOT_SHAPED = Weights(0.0, 0.0, 0.0)


def shaping_weights(shaping: RewardShaping | None, episode: int) -> Weights:
    """Return the shaping weights of an episode of a phase.

    Args:
        shaping: The shaping config of the phase; None for no shaping.
        episode: The index of the episode in the phase, from 0.

    >>> numbers = dict(CLOSENESS_START=2, CLOSENESS_FINAL=1, TOUCH_START=1, TOUCH_FINAL=0)
    >>> shaping = RewardShaping(N=10, K=10, DIRECTION_FINAL=4, **numbers)
    >>> shaping_weights(shaping, 9), shaping_weights(shaping, 15).touch
    (Weights(closeness=2.0, touch=1.0, direction=0.0), 0.5)
    """
    if shaping is None:
        return NOT_SHAPED
    done = min(1.0, max(0.0, (episode - shaping.N) / shaping.K)) if shaping.K else 1.0
    if episode < shaping.N:
        done = 0.0
    return Weights(
        float(shaping.CLOSENESS_START + done * (shaping.CLOSENESS_FINAL - shaping.CLOSENESS_START)),
        float(shaping.TOUCH_START + done * (shaping.TOUCH_FINAL - shaping.TOUCH_START)),
        float(done * shaping.DIRECTION_FINAL),
    )
