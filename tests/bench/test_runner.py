"""Contenders in separate processes: the interpreters, and the measurements."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from shoal._bench.contenders.base import Contender, action_batches, action_lists
from shoal._bench.contenders.gymnasium_vectors import GymnasiumSync
from shoal._bench.contenders.loop import Loop
from shoal._bench.contenders.shoal_vectors import Shoal
from shoal._bench.process import Interpreter, current_interpreter
from shoal._bench.results import Cell
from shoal._bench.runner import Runner, Settings
from shoal._bench.workload import Workload
from tests.bench.contenders import Named, Nested, Noting, Still

QUICK = Settings(rounds=2, seconds=0.02)
STILL = {"still": Workload("still", Still)}


def test_contenders_of_other_libraries_run_without_shoal_installed() -> None:
    interpreter = Interpreter(
        Path(sys.executable), (str(Path.cwd()), *current_interpreter().path), has_shoal=False
    )
    with Runner([Noting(), Loop(), GymnasiumSync()], STILL, QUICK, lambda _: interpreter) as runner:
        cell = runner.measure("still", 2)
    assert cell.failures == {}
    assert cell.notes == {"noting": "native: False, contender: True"}
    assert all(len(rates) == 2 for rates in cell.rates.values())


@pytest.mark.parametrize("contender", [Loop(), GymnasiumSync(), Shoal("shoal", backend="inline")])
def test_action_spaces_may_be_nested(contender: Contender) -> None:
    vector = contender.open(Workload("nested", Nested), 3)
    steps, _ = vector.step_many(0.001)
    vector.close()
    assert steps % 3 == 0


def test_action_lists_equal_action_batches() -> None:
    for workload in (STILL["still"], Workload("nested", Nested)):
        batches, lists = action_batches(workload, 3, count=2), action_lists(workload, 3, count=2)
        for batch, single in zip(batches, lists, strict=True):
            if isinstance(batch, dict):
                assert [each["left"] for each in single] == list(batch["left"])
            else:
                assert single == list(batch)


def test_of_contenders_with_the_same_plan_only_the_first_is_measured() -> None:
    contenders = [Named("first", "the same"), Named("other", "other"), Named("second", "the same")]
    watched: list[tuple[str, int]] = []

    def watch(contender: Contender, cell: Cell) -> None:
        watched.append((contender.name, cell.num_envs))

    with Runner(contenders, STILL, QUICK, watch=watch, plan_key=lambda _, note: note) as runner:
        cell = runner.measure("still", 2)
    assert set(cell.rates) == {"first", "other"}
    assert cell.same_as == {"second": "first"}
    assert cell.as_json()["contenders"]["second"] == {"same_as": "first"}
    turns = [name for name, _ in watched]
    assert turns.count("first") == turns.count("other") == turns.count("second") + QUICK.rounds
