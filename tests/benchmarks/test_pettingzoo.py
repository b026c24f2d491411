"""PettingZoo's contenders step their games."""

import pytest

pytest.importorskip("pettingzoo")
pytest.importorskip("supersuit")

from pettingzoo.test import parallel_api_test

from benchmarks.pettingzoo import March, samplers
from benchmarks.turns import Measuring, take_turns

MODULE = "benchmarks.pettingzoo"


def test_march_is_a_parallel_environment() -> None:
    parallel_api_test(March(), 150)


@pytest.mark.parametrize(
    ("game", "names"),
    [
        ("march", ["shoal-inline", "supersuit"]),
        ("pettingzoo-hockey", ["shoal", "shoal-inline", "supersuit"]),
    ],
)
def test_contenders_are_measured(game: str, names: list[str]) -> None:
    cell = take_turns(MODULE, game, 2, names, Measuring(rounds=2, seconds=0.01))
    assert cell.failures == {}
    assert {name: len(rates) for name, rates in cell.rates.items()} == dict.fromkeys(names, 2)


@pytest.mark.parametrize("name", ["shoal-inline", "supersuit"])
def test_steps_of_single_agents_are_counted(name: str) -> None:
    sampler = samplers("march", 3, Measuring())[name]()
    steps, _ = sampler._vector.step_many(0.0001)  # type: ignore[attr-defined]
    assert steps % (3 * 4) == 0
    sampler.close()
