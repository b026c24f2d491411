"""Which of the ways to step an environment to use, given what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoal._bench.results import Summary, paired_ratio, summarize

__all__ = ["Advice", "advise"]

_AS_GOOD = 0.97
"""A way that reaches so much of the best one's median is as good: the rest is not worth an option.
"""

_LEAST = 0.9
"""Noise or not, no way is recommended whose median is below so much of the best one's."""


@dataclass(frozen=True)
class Advice:
    """Which way to take, and how sure that is."""

    way: str
    """The recommended one."""
    best: str
    """The one with the highest median."""
    share: float
    """How much of the best one's rate the recommended one reaches: the inverse of how many times as
    fast the best one is, as the median of the ratios within a round."""
    runner_up: str | None
    """The next best, where there is another."""
    lead: float | None
    """How many times as fast as the runner-up the best one is, as the median of the ratios within a
    round."""
    rounds: int
    """How often each was measured."""
    is_sure: bool
    """Whether there were several rounds, and the quartiles of the best two are apart."""


def advise(rates: Mapping[str, Sequence[float]]) -> Advice | None:
    """Recommend the simplest way that is as good as the best, within the noise.

    Args:
        rates: Of each way the steps per second in every round, the simplest way first.

    Returns:
        None where nothing was measured.

    Example:
        >>> advice = advise({"auto": [95.0, 99.0, 103.0], "process": [98.0, 101.0, 105.0]})
        >>> advice.way, advice.best, advice.is_sure
        ('auto', 'process', False)
        >>> advise({"auto": [50.0, 51.0, 52.0], "process": [98.0, 101.0, 105.0]}).way
        'process'
    """
    summaries = {way: summarize(rounds) for way, rounds in rates.items()}
    if not summaries:
        return None
    ranked = sorted(summaries, key=lambda way: summaries[way].median, reverse=True)
    best, runner_up = ranked[0], ranked[1] if len(ranked) > 1 else None
    most = summaries[best]
    chosen = next(way for way, summary in summaries.items() if _is_as_good(summary, most))
    return Advice(
        way=chosen,
        best=best,
        share=1 / paired_ratio(rates[best], rates[chosen]),
        runner_up=runner_up,
        lead=None if runner_up is None else paired_ratio(rates[best], rates[runner_up]),
        rounds=len(rates[best]),
        is_sure=len(rates[best]) > 1
        and (runner_up is None or not _overlap(summaries[runner_up], most)),
    )


def _is_as_good(summary: Summary, best: Summary) -> bool:
    share = summary.median / best.median
    return share >= _AS_GOOD or (share >= _LEAST and _overlap(summary, best))


def _overlap(one: Summary, other: Summary) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper
