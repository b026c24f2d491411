"""The benchmark runner: rates, and contenders that fail."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from benchmarks.contenders import CONTENDERS, Contender, Vector
from benchmarks.runner import Runner
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import Lockstep, action_batches
from shoal._bench.results import Cell
from shoal._bench.runner import Settings
from shoal._bench.workload import Workload

QUICK = Settings(rounds=2, seconds=0.02)


class Raising(Contender):
    name = "raising"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        raise ValueError(f"cannot step\n{num_envs} of {workload.name}")


class RaisingInStep(Contender):
    name = "raising-in-step"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        return Lockstep(self._step, action_batches(workload, num_envs), lambda: None)

    def _step(self, actions: object) -> None:
        raise RuntimeError("lost my way")


class Hanging(Contender):
    """Hangs together with a child process, which a kill of its parent alone would leave behind."""

    name = "hanging"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        child = os.fork()
        if child:
            Path(os.environ["SHOAL_TEST_PIDS"]).write_text(f"{os.getpid()} {child}")
        time.sleep(60)
        raise AssertionError("the timeout did not end this process")


class Dying(Contender):
    name = "dying"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        print("my last words", flush=True)
        os.abort()


class Chatty(Contender):
    name = "chatty"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        return Lockstep(self._step, action_batches(workload, num_envs), lambda: None)

    def _step(self, actions: object) -> None:
        os.write(1, b"{}\n")


def measured(*contenders: Contender, settings: Settings = QUICK) -> Cell:
    with Runner(contenders, settings) as runner:
        return runner.measure("noop", 4)


def has_ended(pid: int) -> bool:
    """Wait for the end of a process; an orphan may remain a zombie."""
    status = Path(f"/proc/{pid}/status")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        if not status.exists() or "State:\tZ" in status.read_text():
            return True
        time.sleep(0.01)
    return False


def test_every_contender_gets_a_rate_in_every_round() -> None:
    names = ["loop", "gymnasium-sync", "shoal"]
    cell = measured(*(CONTENDERS[name] for name in names))
    assert cell.failures == {}
    assert list(cell.rates) == names
    assert all(len(rates) == 2 and min(rates) > 0 for rates in cell.rates.values())


def test_a_contender_that_raises_is_reported_and_the_others_are_measured() -> None:
    cell = measured(Raising(), CONTENDERS["loop"], RaisingInStep())
    assert cell.failures == {
        "raising": "ValueError: cannot step 4 of noop",
        "raising-in-step": "RuntimeError: lost my way",
    }
    assert list(cell.rates) == ["loop"]


def test_a_contender_that_hangs_is_killed_with_its_children(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    pids = tmp_path / "pids"
    monkeypatch.setenv("SHOAL_TEST_PIDS", str(pids))
    cell = measured(CONTENDERS["loop"], Hanging(), settings=Settings(2, 0.02, timeout=5.0))
    assert cell.failures == {"hanging": "no answer to 'open' within 5 s"}
    assert list(cell.rates) == ["loop"]
    for pid in pids.read_text().split():
        assert has_ended(int(pid))


def test_a_contender_that_dies_is_reported_and_restarted() -> None:
    with Runner([Dying()], QUICK) as runner:
        cells = [runner.measure("noop", num_envs) for num_envs in (1, 2)]
    assert [cell.failures for cell in cells] == [{"dying": "died (SIGABRT): my last words"}] * 2


def test_output_of_a_contender_does_not_disturb_the_protocol() -> None:
    assert len(measured(Chatty()).rates["chatty"]) == 2


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_workloads_return_elements_of_their_spaces(workload: Workload) -> None:
    env = workload.make()
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    observation, reward, _, truncated, _ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert isinstance(reward, float | int)
    assert not truncated
