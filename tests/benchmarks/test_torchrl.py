"""TorchRL's contenders collect."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.contenders.torchrl_collectors import FRAMES_PER_SLOT, Collecting
from benchmarks.workloads import WORKLOADS


@pytest.mark.parametrize("policy", ["random", "mlp"])
@pytest.mark.parametrize(
    "stepper", ["shoal", "shoal-python", "shoal-in-gym-wrapper", "torchrl-serial"]
)
def test_contenders_collect(monkeypatch: pytest.MonkeyPatch, stepper: str, policy: str) -> None:
    torch: Any = pytest.importorskip("torch")
    pytest.importorskip("torchrl")
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)  # it would stay set here
    contender = Collecting(stepper, policy)
    assert contender.supports("cartpole")
    assert not contender.supports("noop")
    vector = contender.open(WORKLOADS["cartpole"], 2)
    frames, seconds = vector.step_many(0.01)
    assert frames % (2 * FRAMES_PER_SLOT) == 0
    assert frames > 0
    assert seconds >= 0.01
    vector.close()
