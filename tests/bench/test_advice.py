"""The recommended configuration is the simplest one that is as fast as the best."""

from __future__ import annotations

from statistics import median

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal._bench.advice import advise

NAMES = st.text("abc", min_size=1, max_size=2)


def measured(rounds: int) -> st.SearchStrategy[dict[str, list[float]]]:
    """Generate rates of several configurations, with this number of rounds."""
    rates = st.lists(st.floats(1.0, 1e8), min_size=rounds, max_size=rounds)
    return st.dictionaries(NAMES, rates, min_size=1, max_size=6)


RATES = st.integers(1, 9).flatmap(measured)


@given(RATES)
def test_the_recommendation_is_never_much_slower_than_the_best(
    rates: dict[str, list[float]],
) -> None:
    advice = advise(rates)
    assert advice is not None
    most = max(median(rounds) for rounds in rates.values())
    assert median(rates[advice.recommended]) >= 0.9 * most * (1 - 1e-9)
    assert median(rates[advice.best]) == pytest.approx(most)
    pairs = zip(rates[advice.best], rates[advice.recommended], strict=True)
    assert advice.share == pytest.approx(1 / median(best / rate for best, rate in pairs))


@given(RATES)
def test_no_simpler_configuration_is_within_a_few_percent(rates: dict[str, list[float]]) -> None:
    advice = advise(rates)
    assert advice is not None
    simpler = list(rates)[: list(rates).index(advice.recommended)]
    most = median(rates[advice.best])
    assert all(median(rates[name]) < 0.971 * most for name in simpler)


@pytest.mark.parametrize(
    ("auto", "process", "recommended", "is_sure"),
    [
        ([95.0, 99.0, 103.0], [98.0, 101.0, 105.0], "auto", False),  # within the noise
        ([97.9, 98.0, 98.1], [99.9, 100.0, 100.1], "auto", True),  # negligibly slower
        ([80.0, 92.0, 110.0], [99.0, 100.0, 101.0], "auto", False),  # noisy, and fast enough
        ([60.0, 85.0, 118.0], [99.0, 100.0, 101.0], "process", False),  # noisy, and too slow
        ([94.0, 95.0, 96.0], [99.0, 100.0, 101.0], "process", True),
        ([99.0, 100.0, 101.0], [94.0, 95.0, 96.0], "auto", True),
    ],
)
def test_the_simpler_configuration_is_recommended_if_it_is_as_fast(
    auto: list[float], process: list[float], recommended: str, is_sure: bool
) -> None:
    advice = advise({"auto": auto, "process": process})
    assert advice is not None
    assert (advice.recommended, advice.is_sure) == (recommended, is_sure)


def test_a_single_configuration_is_sure_and_none_gives_no_advice() -> None:
    single = advise({"inline": [3.0, 1.0]})
    assert single is not None
    assert single.recommended == "inline"
    assert (single.runner_up, single.lead, single.is_sure) == (None, None, True)
    assert advise({}) is None


def test_a_result_of_one_round_is_never_sure() -> None:
    advice = advise({"auto": [1.0], "process": [10.0]})
    assert advice is not None
    assert (advice.recommended, advice.rounds, advice.is_sure) == ("process", 1, False)
