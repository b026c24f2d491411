"""Choose the recommended configuration from the measured speeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoal._bench.results import Summary, paired_ratio, summarize

__all__ = ["Advice", "advise"]

_EQUAL_SHARE = 0.97
"""A configuration with at least this fraction of the best median counts as equally fast."""

_MIN_SHARE = 0.9
"""A configuration below this fraction of the best median is never recommended, however noisy."""


@dataclass(frozen=True)
class Advice:
    """A recommended configuration, and how reliable the recommendation is."""

    recommended: str
    """The name of the recommended configuration."""
    best: str
    """The name of the configuration with the highest median."""
    share: float
    """The recommended configuration's speed as a fraction of the best one's: the inverse of the
    median ratio over paired rounds."""
    runner_up: str | None
    """The name of the second best configuration, if any."""
    lead: float | None
    """The speed of the best one divided by that of the runner-up: the median over paired rounds."""
    rounds: int
    """The number of rounds."""
    is_sure: bool
    """Whether there were several rounds, and the quartiles of the best two do not overlap."""


def advise(rates: Mapping[str, Sequence[float]]) -> Advice | None:
    """Recommend the simplest configuration that is, within the noise, as fast as the best.

    Args:
        rates: Steps per second in every round, by configuration, the simplest first.

    Returns:
        None if nothing was measured.

    Example:
        >>> advice = advise({"auto": [95.0, 99.0, 103.0], "process": [98.0, 101.0, 105.0]})
        >>> advice.recommended, advice.best, advice.is_sure
        ('auto', 'process', False)
        >>> advise({"auto": [50.0, 51.0, 52.0], "process": [98.0, 101.0, 105.0]}).recommended
        'process'
    """
    summaries = {name: summarize(rounds) for name, rounds in rates.items()}
    if not summaries:
        return None
    ranked = sorted(summaries, key=lambda name: summaries[name].median, reverse=True)
    best, runner_up = ranked[0], ranked[1] if len(ranked) > 1 else None
    fastest = summaries[best]
    chosen = next(name for name, summary in summaries.items() if _is_as_good(summary, fastest))
    return Advice(
        recommended=chosen,
        best=best,
        share=1 / paired_ratio(rates[best], rates[chosen]),
        runner_up=runner_up,
        lead=None if runner_up is None else paired_ratio(rates[best], rates[runner_up]),
        rounds=len(rates[best]),
        is_sure=len(rates[best]) > 1
        and (runner_up is None or not _overlap(summaries[runner_up], fastest)),
    )


def _is_as_good(summary: Summary, best: Summary) -> bool:
    share = summary.median / best.median
    return share >= _EQUAL_SHARE or (share >= _MIN_SHARE and _overlap(summary, best))


def _overlap(one: Summary, other: Summary) -> bool:
    return one.lower <= other.upper and other.lower <= one.upper
