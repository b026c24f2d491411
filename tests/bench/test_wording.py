"""What is said of measurements."""

from __future__ import annotations

from shoal.bench.advice import advise
from shoal.bench.comparison import Outcome
from shoal.bench.results import Cell
from shoal.bench.wording import call_of, explanation


def told(best_peer: str | None = None, **rates: float) -> str:
    """What is said where every contender was equally fast in all rounds."""
    named = {name.replace("_", "-"): [rate] * 3 for name, rate in rates.items()}
    cell = Cell("it", 8, list(named), named)
    ways = {name: rounds for name, rounds in named.items() if name.startswith("shoal")}
    return explanation(Outcome(cell, best_peer, advise(ways)))


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


def test_nobody_is_ahead_where_rounds_and_medians_do_not_agree() -> None:
    rates = {"shoal": [10.0, 20.0, 30.0], "envpool": [11.0, 19.0, 33.0]}
    said = explanation(Outcome(Cell("it", 8, [], rates), "envpool", advise({"shoal": [1.0]})))
    assert said.endswith("It is about as fast as the best peer, envpool.")


def test_noise_is_told_of() -> None:
    cell = Cell("it", 8, [], {"shoal": [90.0, 99.0], "shoal-inline": [80.0, 100.0]})
    said = explanation(Outcome(cell, None, advise(cell.rates)))
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
