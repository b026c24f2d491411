"""TorchRL's collector on Shoal: what is required, and that all contenders collect."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from benchmarks import torchrl
from benchmarks.contenders.torchrl_collectors import FRAMES_PER_SLOT, STEPPERS, Collecting
from benchmarks.results import Cell
from benchmarks.runner import Settings
from benchmarks.torchrl import REQUIRED, measure_torchrl
from benchmarks.workloads import WORKLOADS


def test_required_figures_are_those_of_the_design() -> None:
    assert [(figure.what, figure.bound) for figure in REQUIRED.values()] == [
        ("cartpole 8: shoal, random times torchrl-parallel, random", ">= 3"),
        ("cartpole 8: shoal, mlp times torchrl-parallel, mlp", ">= 3"),
    ]


@pytest.mark.parametrize(("rate", "reached"), [(4.0, True), (2.0, False)])
def test_every_contender_is_measured_with_every_policy(
    monkeypatch: pytest.MonkeyPatch, rate: float, reached: bool
) -> None:
    class Scripted:
        """A runner of which everything is known beforehand."""

        def __init__(self, contenders: Collection[Collecting], _: Settings) -> None:
            self.versions = {each.name: {"torchrl": "0.14"} for each in contenders}

        def __enter__(self) -> Scripted:
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def measure(self, workload: str, num_envs: int, names: Collection[str]) -> Cell:
            rates = {name: [rate if name.startswith("shoal,") else 1.0] for name in names}
            return Cell(workload, num_envs, sorted(names), rates)

    monkeypatch.setattr(torchrl, "Runner", Scripted)
    measured = measure_torchrl(Settings(1, 0.1))
    assert [verdict.reached for verdict in measured.verdicts] == [reached] * 2
    assert [len(cell.contenders) for cell in measured.cells] == [len(STEPPERS)] * 2
    assert len(measured.versions) == 2 * len(STEPPERS)


@pytest.mark.parametrize("policy", ["random", "mlp"])
@pytest.mark.parametrize(
    "stepper", ["shoal", "shoal-python", "shoal-in-gym-wrapper", "torchrl-serial"]
)
def test_contenders_collect(monkeypatch: pytest.MonkeyPatch, stepper: str, policy: str) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("torchrl")
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)  # of this process
    contender = Collecting(stepper, policy)
    assert contender.supports("cartpole")
    assert not contender.supports("noop")
    vector = contender.open(WORKLOADS["cartpole"], 2)
    frames, seconds = vector.step_many(0.01)
    assert frames % (2 * FRAMES_PER_SLOT) == 0
    assert frames > 0
    assert seconds > 0
    vector.close()
