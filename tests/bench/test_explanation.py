"""What is said of measurements."""

from __future__ import annotations

import re

from shoal._bench.advice import advise
from shoal._bench.comparison import CellResult
from shoal._bench.explanation import call_of, explanation
from shoal._bench.results import Cell


def told(best_peer: str | None = None, **rates: float) -> str:
    """What is said where every contender was equally fast in all rounds."""
    named = {name.replace("_", "-"): [rate] * 3 for name, rate in rates.items()}
    cell = Cell("it", 8, list(named), named)
    ways = {name: rounds for name, rounds in named.items() if name.startswith("shoal")}
    return explanation(CellResult(cell, best_peer, advise(ways)))


def test_the_fastest_way_is_compared_with_the_next_with_the_loop_and_with_the_best_peer() -> None:
    said = told("sb3-dummy", shoal=10.0, shoal_process_2=30.0, loop=20.0, sb3_dummy=29.0)
    assert said == (
        "shoal process, 2 workers is the fastest, 3.00 times as fast as shoal auto, the next. "
        "shoal auto reaches 33% of it. It is 1.50 times as fast as a plain loop and about as fast "
        "as the best peer, sb3-dummy."
    )


def test_a_faster_peer_is_owned_up_to() -> None:
    said = told("envpool", shoal=10.0, loop=1.0, envpool=20.0)
    assert said == (
        "shoal auto is the only way that could be measured. It is 10 times as fast as a plain loop "
        "and only 0.50 times as fast as the best peer, envpool."
    )


def test_the_best_of_shoals_is_not_called_the_fastest_where_another_one_is() -> None:
    rates = {"shoal": 10.0, "shoal_process_2": 30.0}
    ours = "shoal process, 2 workers is the fastest of Shoal's, 3.00 times as fast as shoal auto, "
    assert told("envpool", **rates, loop=1.0, envpool=90.0).startswith(ours)
    assert told(**rates, loop=31.0).startswith(ours)


def test_two_sentences_about_the_same_two_agree() -> None:
    ours = {"shoal": [10.0, 10.0, 9.0, 9.0], "shoal-process-2": [11.0, 12.0, 13.0, 14.0]}
    said = explanation(CellResult(Cell("it", 8, [], ours), None, advise(ours)))
    times = re.search(r"([0-9.]+) times as fast as shoal auto", said)
    share = re.search(r"shoal auto reaches ([0-9]+)% of it", said)
    assert times is not None
    assert share is not None
    assert int(share[1]) == round(100 / float(times[1]))


def test_one_round_is_said_to_be_too_few() -> None:
    cell = Cell("it", 8, [], {"shoal": [90.0], "shoal-inline": [30.0]})
    said = explanation(CellResult(cell, None, advise(cell.rates)))
    assert said == (
        "shoal auto is the fastest, 3.00 times as fast as shoal inline, the next. "
        "One round is too few to be sure."
    )


def test_nobody_is_ahead_where_rounds_and_medians_do_not_agree() -> None:
    rates = {"shoal": [10.0, 20.0, 30.0], "envpool": [11.0, 19.0, 33.0]}
    said = explanation(
        CellResult(Cell("it", 8, [], rates), "envpool", advise({"shoal": [1.0] * 3}))
    )
    assert said.endswith("It is about as fast as the best peer, envpool.")


def test_noise_is_told_of() -> None:
    cell = Cell("it", 8, [], {"shoal": [90.0, 99.0], "shoal-inline": [80.0, 100.0]})
    said = explanation(CellResult(cell, None, advise(cell.rates)))
    assert said == "shoal auto is the fastest, though shoal inline is within the noise."


def test_a_simpler_way_that_is_as_good_is_told_as_such() -> None:
    assert told(shoal=98.0, shoal_inline=100.0).startswith(
        "shoal auto reaches 98% of shoal inline, and is simpler."
    )


def test_where_nothing_was_measured_nothing_is_said_to_be_fast() -> None:
    assert told(loop=1.0) == "None of Shoal's ways could be measured."


def test_the_line_to_paste_is_python() -> None:
    line = call_of('"X-v0"', 2, {"backend": "inline"}, {"name": 'a "b"\n', "sizes": (1, 2)})
    assert line == (
        'shoal.make("X-v0", num_envs=2, backend="inline", name="a \\"b\\"\\n", sizes=(1, 2))'
    )
