"""Samplers that take turns in one process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from types import ModuleType

import pytest

from benchmarks import turns
from benchmarks.turns import (
    SPECIAL,
    Measuring,
    Sampler,
    Samplers,
    VectorSampler,
    measure_special,
    rotated,
    take_turns,
)
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import Vector
from shoal._bench.process import ContenderError

LOG: list[str] = []


class Scripted(Sampler):
    """Returns 1, 2, 3, ... and fails in one round."""

    def __init__(self, name: str, fails_in: int | None = None) -> None:
        LOG.append(f"{name} opens")
        if fails_in == 0:
            raise ImportError(f"no {name}\nhere")
        self._name, self._fails_in, self._round = name, fails_in, 0

    def sample(self, seconds: float) -> float:
        assert seconds == 0.5
        self._round += 1
        LOG.append(self._name)
        if self._round == self._fails_in:
            raise RuntimeError("lost its way")
        return float(self._round)

    def close(self) -> None:
        LOG.append(f"{self._name} closes")


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Make a module with samplers that fail in these rounds."""

    def make(**rounds: int | None) -> str:
        LOG.clear()

        def samplers(workload: str, size: int, settings: Measuring) -> Samplers:
            assert (workload, size) == ("walk", 4)
            return {name: partial(Scripted, name, fails_in) for name, fails_in in rounds.items()}

        module = ModuleType("scripted")
        module.samplers = samplers  # type: ignore[attr-defined]
        monkeypatch.setitem(sys.modules, "scripted", module)
        return "scripted"

    return make


def test_samplers_take_turns_and_are_closed(scripted: Callable[..., str]) -> None:
    module = scripted(a=None, b=None, c=None)
    cell = take_turns(module, "walk", 4, ["b", "a"], Measuring(rounds=3, seconds=0.5))
    assert cell.contenders == ["a", "b"]
    assert cell.rates == {"a": [1, 2, 3], "b": [1, 2, 3]}
    assert " ".join(LOG) == "a opens b opens a b b a a b b closes a closes"


def test_a_sampler_that_fails_is_reported_and_the_others_continue(
    scripted: Callable[..., str],
) -> None:
    module = scripted(a=0, b=2, c=None)
    cell = take_turns(module, "walk", 4, ["a", "b", "c"], Measuring(rounds=3, seconds=0.5))
    assert cell.rates == {"c": [1, 2, 3]}
    assert cell.failures == {"a": "ImportError: no a here", "b": "RuntimeError: lost its way"}
    assert LOG.count("b") == 2
    assert LOG[-2:] == ["c closes", "b closes"]


def test_an_interrupt_ends_the_cell_and_closes_the_samplers(
    scripted: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> float:
        raise KeyboardInterrupt

    module = scripted(a=None)
    monkeypatch.setattr(Scripted, "sample", interrupt)
    with pytest.raises(KeyboardInterrupt):
        take_turns(module, "walk", 4, ["a"], Measuring(rounds=3, seconds=0.5))
    assert LOG == ["a opens", "a closes"]


def test_the_order_rotates() -> None:
    orders = ["".join(rotated("abc", turn)) for turn in range(4)]
    assert orders == ["abc", "bca", "cab", "abc"]
    assert rotated([], 3) == []


def test_a_vector_is_warmed_up_and_its_rate_is_steps_per_second() -> None:
    class Steps(Vector):
        calls = 0

        def step_many(self, seconds: float) -> tuple[int, float]:
            self.calls += 1
            return 300, 1.5

        def close(self) -> None:
            self.calls = -1

    vector = Steps()
    sampler = VectorSampler(vector)
    assert vector.calls == 1
    assert sampler.sample(1.0) == 200.0
    sampler.close()
    assert vector.calls == -1


def test_a_process_that_fails_fails_all_its_contenders(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, timeout: float) -> None:
        raise ContenderError("lost its way")

    monkeypatch.setattr(turns, "call_alone", fail)
    cell = measure_special("startup", 2, ["shoal-process", "AsyncVectorEnv"], Measuring())
    assert cell.rates == {}
    assert cell.failures == dict.fromkeys(["shoal-process", "AsyncVectorEnv"], "lost its way")


def test_special_workloads_are_no_environments() -> None:
    assert not set(SPECIAL) & set(WORKLOADS)
