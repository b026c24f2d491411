"""The table of figures: that every row can be measured, and how rows are computed and evaluated."""

from __future__ import annotations

import math
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from benchmarks import figures
from benchmarks.contenders import CONTENDERS
from benchmarks.figures import BEST_PEER, PEERS, Figure, UnknownFigureError, groups, select
from benchmarks.turns import SPECIAL, Measuring
from benchmarks.workloads import WORKLOADS
from shoal._bench import machine
from shoal._bench.results import Cell

RATES = {"fast": [8.0, 4.0, 6.0], "slow": [2.0, 1.0, 3.0]}
ALL = [(group, figure) for group in groups() for figure in group.figures]
RESULTS = Path(figures.__file__).with_name("results")


def figure(
    metric: str = "ratio", requirement: str = "", *, contender: str = "fast", baseline: str = "slow"
) -> Figure:
    return Figure("group", "noop", 8, contender, baseline, metric, requirement)


def cell(**rates: list[float]) -> Cell:
    named = {name.replace("_", "-"): values for name, values in (rates or RATES).items()}
    return Cell("noop", 8, list(named), named)


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "core_count", lambda: 2)


@pytest.mark.parametrize("group", groups(), ids=lambda group: group.name)
def test_every_contender_of_a_figure_can_be_measured_in_its_cell(group: figures.Group) -> None:
    for each in group.figures:
        if each.workload in WORKLOADS:
            assert CONTENDERS[each.contender].supports(each.workload), each.name
            if each.baseline == BEST_PEER:
                assert any(CONTENDERS[name].supports(each.workload) for name in PEERS), each.name
            elif each.baseline:
                assert CONTENDERS[each.baseline].supports(each.workload), each.name
            continue
        if group.needs and find_spec(group.needs) is None:
            pytest.skip(f"{group.needs} is not installed")
        module = import_module(SPECIAL[each.workload].module)
        names = module.samplers(each.workload, each.size, Measuring(device=group.device))
        assert set(each.contenders) <= set(names), each.name


def test_names_are_unique_and_select_one_figure() -> None:
    for group, each in ALL:
        assert select([each.name]) == [(group, [each])]


def test_every_requirement_is_readable_and_holds_somewhere() -> None:
    for _, each in ALL:
        limits = {each.limit(cores) for cores in (1, 2, 16)}
        assert bool(each.requirement) == any(limits), each.name


def test_every_stored_table_belongs_to_a_group() -> None:
    stored = {path.stem for path in RESULTS.glob("*.md")} - {"latest"}
    assert stored <= {group.name for group in groups()}


@pytest.mark.parametrize(
    ("metric", "values"),
    [
        ("ratio", [4.0, 4.0, 2.0]),
        ("time ratio", [0.25, 0.25, 0.5]),
        ("ratio per core", [2.0, 2.0, 1.0]),
        ("million steps/s", [8e-6, 4e-6, 6e-6]),
        ("ms", [8.0, 4.0, 6.0]),
    ],
)
def test_a_figure_is_computed_in_every_round(
    two_cores: None, metric: str, values: list[float]
) -> None:
    assert figure(metric).values(cell()) == pytest.approx(values)


def test_the_result_is_the_median_of_the_rounds_or_the_longest_time() -> None:
    assert figure("ms").evaluate(cell()).value == 6.0
    assert figure("longest s").evaluate(cell()).value == 8.0
    # The machine slowed down after the first round: the ratio of the medians would be 1.
    rates = {"fast": [100.0, 10.0, 10.0], "slow": [50.0, 5.0, 10.0]}
    assert figure().evaluate(cell(**rates)).value == 2.0


@pytest.mark.parametrize(("contender", "baseline"), [("fast", "lost"), ("lost", "fast")])
def test_a_figure_with_a_failed_contender_is_missed(contender: str, baseline: str) -> None:
    verdict = figure("ratio", ">= 0", contender=contender, baseline=baseline).evaluate(cell())
    assert verdict.value is None
    assert not verdict.is_reached
    assert verdict.outcome == "failed"


@pytest.mark.parametrize(
    ("requirement", "outcome"),
    [
        (">= 4", "reached"),
        (">= 4.01", "MISSED"),
        ("<= 4", "reached"),
        ("<= 3.99", "MISSED"),
        ("", ""),
        (">= 9 on 16 cores", ""),
        (">= 9 on 2 cores, >= 1 on 16 cores", "MISSED"),
        (">= 3 on 2 cores, >= 9 on 16 cores", "reached"),
    ],
)
def test_a_result_is_compared_with_the_requirement_for_this_machine(
    two_cores: None, requirement: str, outcome: str
) -> None:
    verdict = figure("ratio", requirement).evaluate(cell())
    assert verdict.outcome == outcome
    assert verdict.is_reached == (outcome != "MISSED")


def test_nan_meets_no_requirement() -> None:
    rates = {"fast": [math.nan], "slow": [1.0]}
    for requirement in (">= 1", "<= 1"):
        assert not figure("ratio", requirement).evaluate(cell(**rates)).is_reached


@pytest.mark.parametrize("requirement", ["at least 3", "> 3", ">= 3 on two cores"])
def test_an_unreadable_requirement_is_an_error(requirement: str) -> None:
    with pytest.raises(ValueError, match="is not a requirement; expected"):
        figure("ratio", requirement).evaluate(cell())


def test_the_best_peer_has_the_highest_median_of_the_peers() -> None:
    # Another peer has the highest single rate and mean; loop is no peer.
    rates = {
        "shoal": [30.0, 6.0, 8.0],
        "sb3-dummy": [5.0, 99.0, 1.0],
        "gymnasium-sync": [6.0, 6.0, 1.0],
        "loop": [99.0] * 3,
    }
    verdict = figure(contender="shoal", baseline=BEST_PEER).evaluate(cell(**rates))
    assert verdict.baseline == "gymnasium-sync"
    assert verdict.value == 5.0
    assert figure(contender="shoal", baseline=BEST_PEER).contenders == ("shoal", *PEERS)


def test_a_failed_peer_is_not_the_best_and_without_peers_there_is_no_figure() -> None:
    best = figure(contender="shoal", baseline=BEST_PEER)
    assert best.evaluate(cell(shoal=[1.0], sb3_dummy=[0.5])).baseline == "sb3-dummy"
    assert best.evaluate(cell(shoal=[1.0])).outcome == "failed"


def test_names_select_groups_figures_and_patterns() -> None:
    assert select([]) == [(group, list(group.figures)) for group in groups()]
    [(group, rows)] = select(["costs"])
    assert rows == list(group.figures)
    [(_, rows)] = select(["kernels/cartpole-8/*"])
    assert [each.contender for each in rows] == [
        "shoal-kernel",
        "shoal-kernel-first-come",
        "shoal-kernel",
    ]
    assert [group.name for group, _ in select(["rllib", "ray"])] == ["ray", "rllib"]
    for name in ("chess", "cost", "kernels/chess"):
        with pytest.raises(UnknownFigureError, match=f"is called '{name}'"):
            select(["costs", name])
