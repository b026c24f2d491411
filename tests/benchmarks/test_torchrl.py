"""TorchRL's collector on Shoal: what is required, and that all contenders collect."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.contenders.torchrl_collectors import (
    FRAMES_PER_SLOT,
    POLICIES,
    STEPPERS,
    Collecting,
)
from benchmarks.torchrl import REQUIRED
from benchmarks.workloads import WORKLOADS


def test_required_figures_are_those_of_the_issue() -> None:
    bounds = [(figure.what, figure.bound) for figure in REQUIRED]
    for policy in ("random", "mlp"):
        what = f"cartpole 8: shoal, {policy} times torchrl-parallel, {policy}"
        assert (what, ">= 3") in bounds


def test_required_figures_are_about_what_there_is() -> None:
    known = {Collecting(stepper, policy).name for stepper in STEPPERS for policy in POLICIES}
    for figure in REQUIRED:
        assert figure.contest is not None
        assert set(figure.contest.contenders) <= known


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
