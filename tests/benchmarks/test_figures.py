"""The required figures: what is measured for them, and when they are reached."""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from typing import Any, cast

import pytest

from benchmarks import startup
from benchmarks.contenders import CONTENDERS
from benchmarks.figures import REQUIRED, matching
from benchmarks.judging import Bench, Contest, Figure, Verdict, judge, rate, times, verdict_table
from benchmarks.memory import measure_worker_memory
from benchmarks.runner import Runner
from benchmarks.sb3 import measured_apart
from benchmarks.startup import measure_startup
from benchmarks.training import Training
from benchmarks.workloads import WORKLOADS
from shoal._bench.results import Cell
from shoal._bench.runner import Settings

RATES = {"fast": [8e6, 4e6, 6e6], "slow": [2e6, 1e6, 3e6]}


class Scripted:
    """A runner that knows the rates beforehand, and takes note of what it is asked to measure."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, int, set[str]]] = []

    def measure(self, workload: str, num_envs: int, names: Collection[str]) -> Cell:
        self.asked.append((workload, num_envs, set(names)))
        rates = {name: RATES[name] for name in RATES if name in names}
        failures = {name: "lost its way" for name in names if name not in RATES}
        return Cell(workload, num_envs, sorted(names), rates, failures)


def measured(*figures: Figure) -> tuple[list[float | None], Scripted]:
    runner = Scripted()
    contests = [figure.contest for figure in figures if figure.contest]
    verdicts = judge(figures, Bench(cast(Runner, runner), contests))
    return [verdict.value for verdict in verdicts], runner


def test_times_is_the_ratio_of_the_figures_own_subject_to_its_rival() -> None:
    values, _ = measured(
        times("fast", "slow", "noop", 8, at_least=1.0),
        times("slow", "fast", "noop", 8, at_least=1.0),
    )
    assert values == [4.0, 0.25]


def test_times_a_loop_on_two_cores_is_half_as_many() -> None:
    figure = times("fast", "slow", "noop", 8, at_least=1.0, cores=2)
    assert figure.what == "noop 8: fast times slow on 2 cores"
    assert measured(figure)[0] == [2.0]


def test_a_rate_is_the_median_in_millions() -> None:
    assert measured(rate("fast", "noop", 8, at_least=1.0))[0] == [6.0]


def test_a_figure_whose_contender_failed_has_no_value_and_is_missed() -> None:
    for figure in (
        times("fast", "lost", "noop", 8, at_least=0.0),
        times("lost", "fast", "noop", 8, at_least=0.0),
        rate("lost", "noop", 8, at_least=0.0),
    ):
        values, _ = measured(figure)
        assert values == [None]
        assert not figure.reached(None)


def test_a_cell_is_measured_once_with_all_its_contenders_and_no_others() -> None:
    _, runner = measured(
        times("fast", "slow", "noop", 8, at_least=1.0),
        times("fast", "slow", "dict", 8, at_least=1.0),
        times("slow", "third", "noop", 8, at_least=1.0),
    )
    assert runner.asked == [
        ("noop", 8, {"fast", "slow", "third"}),
        ("dict", 8, {"fast", "slow"}),
    ]


@pytest.mark.parametrize(
    ("bounds", "bound", "kept", "broken"),
    [
        ({"at_least": 2.0}, ">= 2", [2.0, 3.0], [1.9, math.nan]),
        ({"at_most": 2.0}, "<= 2", [2.0, 0.0], [2.1, math.nan]),
    ],
)
def test_a_figure_is_reached_up_to_its_bound(
    bounds: dict[str, float], bound: str, kept: list[float], broken: list[float]
) -> None:
    figure = Figure("something", lambda _: None, **bounds)
    assert figure.bound == bound
    assert all(figure.reached(value) for value in kept)
    assert not any(figure.reached(value) for value in broken)


def test_verdicts_are_shown_and_are_plain_data() -> None:
    figure = Figure("something", lambda _: None, at_least=2.0)
    verdicts = [Verdict(figure, 2.5), Verdict(figure, 1.5), Verdict(figure, None)]
    assert verdict_table(verdicts).rows == [
        ["something", ">= 2", "2.50", "reached"],
        ["something", ">= 2", "1.50", "MISSED"],
        ["something", ">= 2", "failed", "MISSED"],
    ]
    assert verdicts[1].as_json() == {
        "figure": "something",
        "required": ">= 2",
        "measured": 1.5,
        "reached": False,
    }


def test_required_figures_are_about_what_there_is() -> None:
    contests = [figure.contest for figure in REQUIRED if figure.contest]
    assert Contest("noop", 8, ("shoal-process", "gymnasium-async")) in contests
    for workload, _, contenders in contests:
        if workload in WORKLOADS:
            assert set(contenders) <= set(CONTENDERS)
        else:
            assert workload in measured_apart(Settings(), Training())
    descriptions = [figure.what for figure in REQUIRED]
    assert len(set(descriptions)) == len(descriptions)


def test_figures_are_chosen_by_a_part_of_their_description() -> None:
    assert matching("", slow=True) == list(REQUIRED)
    assert [figure.what for figure in matching("loop on 2")] == [
        "cartpole 32: shoal-process times loop on 2 cores",
        "burn100us 32: shoal-process times loop on 2 cores",
    ]
    assert matching("nonsense") == []


def test_slow_figures_are_left_out_unless_asked_for() -> None:
    assert [figure for figure in REQUIRED if figure not in matching("")] == [
        figure for figure in REQUIRED if figure.slow
    ]
    assert matching("PPO") == []
    assert [figure.what for figure in matching("PPO", slow=True)] == [
        "PPO 8: shoal-sb3-subproc times sb3-subproc",
        "PPO 8: shoal-sb3-dummy times sb3-dummy",
    ]


def test_a_workload_that_is_no_environment_is_measured_apart() -> None:
    runner, apart = Scripted(), Scripted()
    contests = [Contest("noop", 8, ("fast",)), Contest("learning", 8, ("fast", "slow"))]
    bench = Bench(cast(Runner, runner), contests, {"learning": apart.measure})
    assert bench.cell("learning", 8) is bench.cell("learning", 8)
    bench.cell("noop", 8)
    assert apart.asked == [("learning", 8, {"fast", "slow"})]
    assert runner.asked == [("noop", 8, {"fast"})]


def test_startup_ends_with_the_first_observations_and_closes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = []

    class Slow:
        def __init__(self, num_envs: int) -> None:
            time.sleep(0.02)

        def reset(self, seed: int) -> None:
            time.sleep(0.02)

        def close(self) -> None:
            done.append("closed")
            time.sleep(0.2)

    starts: dict[str, Any] = {"slow": Slow}
    monkeypatch.setattr(startup, "STARTS", starts)
    assert 0.04 <= measure_startup("slow", 1, attempts=2).median < 0.2
    assert done == ["closed", "closed"]


def test_a_worker_takes_the_memory_of_an_interpreter() -> None:
    assert 5.0 < measure_worker_memory(fewer=1, more=2) < 500.0
