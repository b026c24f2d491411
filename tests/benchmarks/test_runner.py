"""The benchmark runner: what it measures, and what it does with contenders that misbehave."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from benchmarks.contenders import CONTENDERS, Contender, Vector
from benchmarks.render import as_markdown, as_text
from benchmarks.runner import Runner
from benchmarks.workloads import WORKLOADS
from shoal._bench.contenders.base import Lockstep, action_batches
from shoal._bench.results import Cell, Report, paired_ratio, summarize
from shoal._bench.runner import Settings
from shoal._bench.tables import short_number
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
    """Hangs with a child process, which would outlive a kill of its parent alone."""

    name = "hanging"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        child = os.fork()
        if child:
            Path(os.environ["SHOAL_TEST_PIDS"]).write_text(f"{os.getpid()} {child}")
        time.sleep(60)
        raise AssertionError("nobody killed me")


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


def is_gone_soon(pid: int) -> bool:
    """A killed orphan goes in its own time, and may stay a zombie where nobody collects it."""
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
        assert is_gone_soon(int(pid))


def test_a_contender_that_dies_is_reported_and_started_anew() -> None:
    with Runner([Dying()], QUICK) as runner:
        cells = [runner.measure("noop", num_envs) for num_envs in (1, 2)]
    assert [cell.failures for cell in cells] == [{"dying": "died (SIGABRT): my last words"}] * 2


def test_what_a_contender_prints_does_not_disturb_the_protocol() -> None:
    assert len(measured(Chatty()).rates["chatty"]) == 2


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_workloads_keep_to_their_spaces(workload: Workload) -> None:
    env = workload.make()
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    assert env.observation_space.contains(observation)
    observation, reward, _, truncated, _ = env.step(env.action_space.sample())
    assert env.observation_space.contains(observation)
    assert isinstance(reward, float | int)
    assert not truncated


def test_summary_is_the_median_between_the_quartiles() -> None:
    summary = summarize([5.0, 1.0, 3.0, 2.0, 4.0])
    assert summary == (3.0, 2.0, 4.0)
    assert summary.spread == pytest.approx(1 / 3)


def test_ratio_is_the_median_of_the_ratios_within_rounds() -> None:
    # The machine slowed down after the first round: the ratio of the medians would be 1.
    assert paired_ratio([100.0, 10.0, 10.0], [50.0, 5.0, 10.0]) == 2.0
    with pytest.raises(ValueError, match="3 rounds cannot be paired with 2"):
        paired_ratio([1.0, 1.0, 1.0], [1.0, 1.0])


@pytest.mark.parametrize(
    ("value", "text"),
    [(1_234_567, "1.23 M"), (999_600, "1.00 M"), (45_600, "45.6 k"), (789.4, "789"), (2, "2.00")],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert short_number(value) == text


def small_report() -> Report:
    cells = [
        Cell("noop", 8, ["shoal", "loop"], {"shoal": [3e6, 3e6], "loop": [2e6, 1e6]}),
        Cell("noop", 32, ["shoal", "loop"], {"shoal": [3e6, 3e6]}, {"loop": "lost its way"}),
    ]
    machine = {"date": "today", "cpu": "abacus", "cores": 2, "system": "wood"}
    settings = {"rounds": 2, "seconds": 0.25}
    return Report(machine, settings, {"loop": {"python": "3.11.7", "numpy": "2.4.6"}}, cells)


def test_text_shows_rates_ratios_and_failures() -> None:
    lines = as_text(small_report()).splitlines()
    assert lines[:6] == [
        "noop        8 envs     x      32 envs  x",
        "─────  ───────────  ────  ───────────  ─",
        "shoal  3.00 M ± 0%        3.00 M ± 0%",
        "loop   1.50 M ±17%  2.25       failed",
        "",
        "- loop failed (noop 32): lost its way",
    ]


def test_markdown_shows_tables_machine_and_versions() -> None:
    text = as_markdown(small_report())
    assert "today, abacus, 2 cores, wood; 2 interleaved rounds of 0.25 s." in text
    assert "| loop  | 1.50 M ±17% | 2.25 |      failed |   |" in text
    assert "- loop failed (noop 32): lost its way" in text
    assert "- loop: python 3.11.7, numpy 2.4.6" in text


def test_plot_is_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from shoal._bench import plot

    plot.save(small_report(), tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_json_holds_every_round_and_every_reason() -> None:
    cells = json.loads(json.dumps(small_report().as_json()))["cells"]
    assert cells[0]["contenders"]["loop"] == {
        "rates": [2e6, 1e6],
        "median": 1.5e6,
        "lower": 1.25e6,
        "upper": 1.75e6,
        "shoal_ratio": 2.25,
    }
    assert cells[1]["contenders"]["loop"] == {"failure": "lost its way"}
