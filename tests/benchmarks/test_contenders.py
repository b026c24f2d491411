"""The contenders: the steps that they count, and the options that reach their processes."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Discrete

import shoal
from benchmarks.contenders import CONTENDERS, STANDARD
from benchmarks.contenders.shoal_kernels import swing_in_c, swing_in_numba
from benchmarks.contenders.shoal_vectors import FirstCome
from benchmarks.runner import Runner
from benchmarks.workloads import GYMNASIUM_IDS, WORKLOADS
from shoal._bench.contenders.base import action_batches
from shoal._bench.contenders.shoal_vectors import Shoal
from shoal._bench.results import SUBJECT
from shoal._bench.runner import Settings
from shoal._bench.workload import Workload

QUICK = Settings(rounds=2, seconds=0.02)


class Counting(gymnasium.Env[Any, Any]):
    """Counts its steps."""

    observation_space = Discrete(2)
    action_space = Discrete(2)
    steps = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        self.steps += 1
        return 0, 0.0, False, False, {}


class Scripted:
    """A vector of eight slots that are received in batches of two, three and four."""

    num_envs = 8

    def __init__(self) -> None:
        self.in_flight: list[int] = []
        self.sizes: Iterator[int] = iter([2, 3, 4] * 1_000_000)
        self.waited_for: set[int | None] = set()
        self.received = 0

    def send(self, actions: Any, slots: Any = None) -> None:
        chosen = list(range(8)) if slots is None else list(slots)
        assert len(actions) == len(chosen)
        assert not set(chosen) & set(self.in_flight)
        self.in_flight += chosen

    def recv(self, min_slots: int | None = None) -> Any:
        self.waited_for.add(min_slots)
        size = len(self.in_flight) if min_slots is None else next(self.sizes)
        batch, self.in_flight = self.in_flight[:size], self.in_flight[size:]
        self.received += len(batch)
        return SimpleNamespace(slots=np.array(batch))


def test_first_come_counts_the_slots_that_it_receives() -> None:
    envs = Scripted()
    steps, seconds = FirstCome(envs, WORKLOADS["noop"], min_slots=2).step_many(0.01)
    assert steps == envs.received > 8
    assert seconds >= 0.01
    assert envs.waited_for == {2, None}
    assert envs.in_flight == []


def test_first_come_counts_every_step_and_leaves_no_slot_in_flight() -> None:
    with shoal.make(Counting, num_envs=8, workers=2, caller_works=False) as envs:
        envs.reset(seed=0)
        steps, _ = FirstCome(envs, Workload("counting", Counting), min_slots=2).step_many(0.02)
        assert sum(envs.get_attr("steps")) == steps


@pytest.mark.parametrize(("num_envs", "min_slots"), [(1, 1), (3, 1), (8, 2)])
def test_first_come_waits_for_a_quarter_of_the_slots(
    monkeypatch: pytest.MonkeyPatch, num_envs: int, min_slots: int
) -> None:
    waited_for = []

    class Noted(FirstCome):
        def __init__(self, envs: Any, workload: Workload, min_slots: int) -> None:
            waited_for.append(min_slots)
            super().__init__(envs, workload, min_slots)

    monkeypatch.setattr("benchmarks.contenders.shoal_vectors.FirstCome", Noted)
    CONTENDERS["shoal-first-come"].open(WORKLOADS["noop"], num_envs).close()
    assert waited_for == [min_slots]


def test_options_reach_the_process_and_the_plan_comes_back() -> None:
    contenders = [
        Shoal("two", backend="process", workers=2),
        CONTENDERS["shoal-inline"],
        CONTENDERS["shoal-process"],
        CONTENDERS["shoal-first-come"],
    ]
    with Runner(contenders, QUICK) as runner:
        cell = runner.measure("noop", 6)
    assert cell.failures == {}
    assert cell.notes["two"] == "6 slots, 2 worker processes and the caller with 2 slots: requested"
    assert "inline" in cell.notes["shoal-inline"]
    assert "and the caller" in cell.notes["shoal-process"]
    assert "and the caller" not in cell.notes["shoal-first-come"]
    assert cell.as_json()["contenders"]["two"]["note"] == cell.notes["two"]


def test_only_the_named_contenders_are_measured() -> None:
    with Runner([CONTENDERS["loop"], CONTENDERS["gymnasium-sync"]], QUICK) as runner:
        assert list(runner.measure("noop", 2, ["loop"]).rates) == ["loop"]


def test_a_run_measures_contenders_that_exist_and_step_cartpole() -> None:
    assert len(set(STANDARD)) == len(STANDARD)
    assert all(CONTENDERS[name].supports("cartpole") for name in STANDARD)
    assert SUBJECT in STANDARD


@pytest.mark.parametrize("workload", GYMNASIUM_IDS)
@pytest.mark.parametrize("name", ["shoal-kernel", "shoal-kernel-first-come", "plain-c"])
def test_native_contenders_step_every_gymnasium_workload(name: str, workload: str) -> None:
    assert CONTENDERS[name].supports(workload)
    assert not CONTENDERS[name].supports("noop")
    vector = CONTENDERS[name].open(WORKLOADS[workload], 6)
    steps, seconds = vector.step_many(0.001)
    vector.close()
    assert steps >= 6
    assert seconds >= 0.001


@pytest.mark.parametrize("workload", ["cartpole", "pendulum", "acrobot", "mountain-car"])
def test_plain_loops_compute_what_kernels_compute(workload: str) -> None:
    import shoal

    count, batches = 500, action_batches(WORKLOADS[workload], 500)
    loop: Any = CONTENDERS["plain-c"].open(WORKLOADS[workload], count)
    envs = shoal.make(GYMNASIUM_IDS[workload], count)
    envs.reset(seed=0)
    memory = loop._step(batches[0])  # the first step resets all
    fields = envs.state.dtype.names[:4]
    for column, field in enumerate(fields):
        if field != "torque":
            envs.state[field] = memory["state"][:, column]
    memory = loop._step(batches[1])
    _, rewards, terminated, *_ = envs.step(batches[1])
    assert np.allclose(memory["reward"], rewards, atol=1e-5)
    assert np.array_equal(memory["terminated"], terminated)
    loop.close()


@pytest.mark.parametrize("name", ["shoal-kernel-c", "shoal-kernel-numba"])
def test_user_defined_kernels_are_stepped(name: str) -> None:
    vector = CONTENDERS[name].open(WORKLOADS["swing"], 6)
    assert vector.step_many(0.001)[0] >= 6
    vector.close()


def test_the_example_is_the_same_in_c() -> None:
    import shoal

    numba, c = (shoal.make(load(), 50) for load in (swing_in_numba, swing_in_c))
    assert np.array_equal(numba.reset(seed=1)[0], c.reset(seed=1)[0])
    for _ in range(20):
        actions = c.action_space.sample()
        (one, rewards, *_), (other, others, *_) = numba.step(actions), c.step(actions)
        assert np.allclose(one, other, atol=1e-5)
        assert np.allclose(rewards, others, atol=1e-4)


@pytest.mark.parametrize("name", ["shoal-sb3-dummy", "shoal-sb3-subproc"])
def test_shoal_sb3_steps_flat_and_nested_observations(name: str) -> None:
    for workload in ("noop", "dict"):
        assert CONTENDERS[name].supports(workload)
        vector = CONTENDERS[name].open(WORKLOADS[workload], 3)
        steps, seconds = vector.step_many(0.001)
        vector.close()
        assert steps % 3 == 0
        assert seconds >= 0.001
