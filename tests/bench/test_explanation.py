"""Explanations of results, as sentences."""

from __future__ import annotations

import re

from shoal._bench.advice import advise
from shoal._bench.comparison import CellResult
from shoal._bench.explanation import call_of, explanation
from shoal._bench.results import Cell


def explained(best_peer: str | None = None, **rates: float) -> str:
    """Return the explanation of rates that are the same in every round."""
    rounds = {name.replace("_", "-"): [rate] * 3 for name, rate in rates.items()}
    cell = Cell("it", 8, list(rounds), rounds)
    ours = {name: each for name, each in rounds.items() if name.startswith("shoal")}
    return explanation(CellResult(cell, best_peer, advise(ours)))


def test_the_fastest_is_compared_with_the_next_the_loop_and_the_best_peer() -> None:
    text = explained("sb3-dummy", shoal=10.0, shoal_process_2=30.0, loop=20.0, sb3_dummy=29.0)
    assert text == (
        "shoal process, 2 workers is the fastest, 3.00 times as fast as the next, shoal auto. "
        "shoal auto reaches 33% of its speed. It is 1.50 times as fast as a plain loop and about "
        "as fast as the best peer, sb3-dummy."
    )


def test_a_faster_peer_is_reported() -> None:
    text = explained("envpool", shoal=10.0, loop=1.0, envpool=20.0)
    assert text == (
        "shoal auto is the only configuration that could be measured. It is 10 times as fast as a "
        "plain loop and only 0.50 times as fast as the best peer, envpool."
    )


def test_the_best_configuration_is_not_called_the_fastest_if_a_peer_is_faster() -> None:
    rates = {"shoal": 10.0, "shoal_process_2": 30.0}
    expected = "shoal process, 2 workers is Shoal's fastest configuration, 3.00 times as fast as "
    assert explained("envpool", **rates, loop=1.0, envpool=90.0).startswith(expected)
    assert explained(**rates, loop=31.0).startswith(expected)


def test_ratio_and_percentage_of_the_same_pair_agree() -> None:
    ours = {"shoal": [10.0, 10.0, 9.0, 9.0], "shoal-process-2": [11.0, 12.0, 13.0, 14.0]}
    text = explanation(CellResult(Cell("it", 8, [], ours), None, advise(ours)))
    times = re.search(r"([0-9.]+) times as fast as the next, shoal auto", text)
    share = re.search(r"shoal auto reaches ([0-9]+)% of its speed", text)
    assert times is not None
    assert share is not None
    assert int(share[1]) == round(100 / float(times[1]))


def test_one_round_is_too_few() -> None:
    cell = Cell("it", 8, [], {"shoal": [90.0], "shoal-inline": [30.0]})
    text = explanation(CellResult(cell, None, advise(cell.rates)))
    assert text == (
        "shoal auto is the fastest, 3.00 times as fast as the next, shoal inline. "
        "One round is too few for a reliable result."
    )


def test_contenders_are_called_equal_if_ratio_and_medians_disagree() -> None:
    rates = {"shoal": [10.0, 20.0, 30.0], "envpool": [11.0, 19.0, 33.0]}
    text = explanation(
        CellResult(Cell("it", 8, [], rates), "envpool", advise({"shoal": [1.0] * 3}))
    )
    assert text.endswith("It is about as fast as the best peer, envpool.")


def test_differences_within_the_noise_are_reported() -> None:
    cell = Cell("it", 8, [], {"shoal": [90.0, 99.0], "shoal-inline": [80.0, 100.0]})
    text = explanation(CellResult(cell, None, advise(cell.rates)))
    assert text == "shoal auto is the fastest, but shoal inline is within the noise."


def test_a_simpler_configuration_that_is_as_fast_is_recommended() -> None:
    assert explained(shoal=98.0, shoal_inline=100.0).startswith(
        "shoal auto is simpler and reaches 98% of the speed of shoal inline."
    )


def test_without_measurements_of_shoal_there_is_no_recommendation() -> None:
    assert explained(loop=1.0) == "No configuration of Shoal could be measured."


def test_the_recommended_call_is_valid_python() -> None:
    line = call_of('"X-v0"', 2, {"backend": "inline"}, {"name": 'a "b"\n', "sizes": (1, 2)})
    assert line == (
        'shoal.make("X-v0", num_envs=2, backend="inline", name="a \\"b\\"\\n", sizes=(1, 2))'
    )
