"""Learning: what is required, that the loops and updates are what they are said to be."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.learning import cells, updates
from benchmarks.learning.cells import CURRICULUM, UNITS, Rounds, makers
from benchmarks.learning.exercise import Exercise
from benchmarks.learning.figures import planned
from benchmarks.learning.games import Games
from benchmarks.learning.loops import Collecting, CurriculumSteps, PPOLearning
from benchmarks.learning.measuring import measure_learning
from benchmarks.learning.settings import LearningSettings
from benchmarks.learning.updates import AS_DQN, BATCH, ShoalUpdates, StableBaselinesUpdates

ON_ALL = [
    ("collection 8: shoal-dddqn times the guide's 5,661 steps/s", ">= 3"),
    ("collection 256: shoal-dddqn times the guide's 5,661 steps/s", ">= 30"),
    ("SAC updates 256: shoal-sac times sb3-sac", ">= {}"),
    ("DQN updates 256: shoal-dddqn times sb3-dqn", ">= {}"),
    ("DQN updates 256: shoal-as-dqn times sb3-dqn", ">= {}"),
]
GAMES = [
    ("evaluation 200: seconds for 200 games against weak", "<= 2"),
    ("evaluation 200: seconds for 200 games against strong", "<= 2"),
]
ON_GPU = [
    ("SAC updates 256: shoal-sac, updates/s", ">= 725"),
    ("PPO 8192: shoal-ppo, million steps/s", ">= 0.5"),
]
TINY = LearningSettings(rounds=2, seconds=0.001, steps=16)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def few_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(updates, "_ROWS", 600)
    monkeypatch.setattr(updates, "_WARM_UP", 1)
    monkeypatch.setattr(updates, "_AT_ONCE", 2)


class Scripted(Exercise):
    """Takes no time; its rate is known beforehand, and counts up so that a median is needed."""

    closed = 0

    def __init__(self, rate: float) -> None:
        super().__init__("cpu")
        self._rates = iter([rate / 2, rate, rate * 2])
        self.note = f"rate {rate:g}"

    def once(self) -> int:
        return 1

    def take_round(self, seconds: float) -> float:
        return next(self._rates)

    def close(self) -> None:
        Scripted.closed += 1


@pytest.mark.parametrize(("device", "times"), [("cpu", "1.2"), ("cuda", "4")])
def test_required_figures_are_those_of_the_issue(device: str, times: str) -> None:
    plan = planned(LearningSettings(device=device))
    expected = [(what, bound.format(times)) for what, bound in ON_ALL]
    expected += [*(ON_GPU if device == "cuda" else []), *GAMES]
    assert [(figure.what, figure.bound) for figure in plan.figures] == expected


def test_contests_are_between_those_that_there_are() -> None:
    settings = LearningSettings(ppo_envs=24)
    plan = planned(settings)
    assert {contest.workload for contest in plan.contests} == set(UNITS)
    for workload, number, names in plan.contests:
        assert set(names) <= set(makers(workload, number, settings))
    assert ("PPO", 24, ("shoal-ppo",)) in plan.contests
    assert {figure.contest for figure in plan.figures} <= set(plan.contests)


def test_a_text_chooses_what_is_measured() -> None:
    settings = LearningSettings()
    plan = planned(settings, "SAC")
    assert [contest.workload for contest in plan.contests] == ["SAC updates"]
    assert [figure.what for figure in plan.figures] == [ON_ALL[2][0]]
    plan = planned(settings, "shoal-as-dqn")
    assert [contest.contenders for contest in plan.contests] == [("shoal-as-dqn", "sb3-dqn")]
    assert [contest.workload for contest in planned(settings, "PPO").contests] == ["PPO"]
    assert planned(settings, "chess") == ([], [])


@pytest.mark.parametrize("num_envs", [1, 8])
def test_collecting_acts_and_remembers_and_learns_nothing(num_envs: int) -> None:
    loop = Collecting(num_envs, "cpu")
    agent: Any = loop.run.agent
    task: Any = loop.run._parts.task
    before = agent.description()["network"]["online.1.layers.0.weight"].clone()
    assert loop.once() == 16 * num_envs
    assert agent.settings.hidden_dim == [256, 256]
    assert agent.memory.size == loop.run.steps == 16 * num_envs
    assert loop.run.updates == 0
    assert torch.equal(agent.description()["network"]["online.1.layers.0.weight"], before)
    assert task.opponents[1].name == "weak"
    loop.close()
    assert not loop.run.folder.path.exists()


def test_one_update_belongs_to_each_step_whatever_the_number_of_environments() -> None:
    loop = CurriculumSteps(4, "cpu", steps=16)
    assert not loop.run._parts.main.pace.is_warming_up
    steps, made = loop.run.steps, loop.run.updates
    assert loop.take_round(0.0) > 0
    assert loop.run.steps - steps == 16 + 4  # with one step of all slots before
    assert loop.run.updates - made == 20
    assert loop.note == "1.00 updates a step"
    loop.close()


def test_ppo_learns_from_whole_rollouts() -> None:
    loop = PPOLearning(4, "cpu")
    made = loop.run.updates
    assert loop.once() == 64 * 4
    assert loop.run.updates - made == 3 * 8
    assert loop.take_round(0.001) > 0
    loop.close()


def test_games_are_played_to_their_end() -> None:
    assert Games("weak", 5, "cpu").once() == 5


@pytest.mark.parametrize(
    ("kind", "hyperparameters"), [("SAC", {}), ("DDDQN", {}), ("DDDQN", AS_DQN)]
)
def test_updates_change_what_an_agent_does(
    few_rows: None, kind: str, hyperparameters: dict[str, Any]
) -> None:
    exercise = ShoalUpdates(kind, "cpu", **hyperparameters)
    agent: Any = exercise.agent
    states = np.ones((1, 18), np.float32)
    before = agent.evaluate(states)
    assert agent.memory.size == 600
    assert agent.settings.batch_size == BATCH
    assert exercise.once() == 2
    assert agent.updates == 3
    assert agent.evaluate(states) != before


@pytest.mark.parametrize("kind", ["SAC", "DQN"])
def test_both_libraries_update_networks_of_the_same_size(few_rows: None, kind: str) -> None:
    pytest.importorskip("stable_baselines3")
    theirs = StableBaselinesUpdates(kind, "cpu")
    assert theirs.once() == 2
    assert theirs.model._n_updates == 3
    assert theirs.model.replay_buffer.size() == 600
    ours: Any = ShoalUpdates("DDDQN" if kind == "DQN" else kind, "cpu", **_same(kind)).agent

    def size(network: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in network.parameters())

    if kind == "DQN":
        assert size(theirs.model.q_net) == size(ours.values)
        names = ("gamma", "tau", "target_update_interval", "max_grad_norm")
        found = [getattr(theirs.model, name) for name in names]
        settings = ours.settings
        freq = settings.target_update_freq
        assert found == [settings.gamma, settings.tau, freq, settings.max_grad_norm]
    else:
        assert size(theirs.model.actor) == size(ours.actor)
        assert size(theirs.model.critic) == size(ours.critics)
        assert theirs.model.target_entropy == ours._target_entropy
        assert (theirs.model.gamma, theirs.model.tau) == (ours.settings.gamma, ours.settings.tau)


def _same(kind: str) -> dict[str, Any]:
    return dict(AS_DQN) if kind == "DQN" else {}


def test_the_rest_is_measured_where_the_peer_is_missing(
    monkeypatch: pytest.MonkeyPatch, few_rows: None
) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    cell = Rounds(TINY).measure("DQN updates", BATCH, {"shoal-dddqn", "sb3-dqn"})
    assert [len(rates) for rates in cell.rates.values()] == [2]
    assert list(cell.failures) == ["sb3-dqn"]
    assert "stable_baselines3" in cell.failures["sb3-dqn"]
    assert "\n" not in cell.failures["sb3-dqn"]


def scripted(monkeypatch: pytest.MonkeyPatch, rates: dict[str, float]) -> None:
    """Let every contender have this rate; one that is not named fails."""

    def make(name: str) -> Exercise:
        if name not in rates:
            raise ImportError(f"no {name} here")
        return Scripted(rates[name])

    def made(workload: str, number: int, settings: LearningSettings) -> Any:
        return {name: partial(make, name) for name in makers(workload, number, settings)}

    monkeypatch.setattr(cells, "makers", made)


RATES = {
    "shoal-dddqn": 200_000.0,
    "shoal-as-dqn": 500.0,
    "shoal-sac": 300.0,
    "shoal-ppo": 70_000.0,
    "sb3-dqn": 250.0,
    "sb3-sac": 200.0,
    "num_envs=1": 400.0,
    "num_envs=4": 600.0,
    "num_envs=8": 800.0,
    "weak": 400.0,
    "strong": 800.0,
}


def test_all_is_measured_judged_and_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted(monkeypatch, RATES)
    settings = LearningSettings(rounds=3, seconds=0.5, ppo_envs=16)
    before = Scripted.closed
    assert measure_learning(settings, planned(settings), tmp_path)
    assert Scripted.closed - before == 3 + 2 + 3 + 1 + 3 + 2

    data = json.loads((tmp_path / "learning-cpu.json").read_text())
    measured = {figure["figure"]: figure["measured"] for figure in data["figures"]}
    assert measured["SAC updates 256: shoal-sac times sb3-sac"] == 1.5
    assert measured["collection 8: shoal-dddqn times the guide's 5,661 steps/s"] > 35
    assert measured["evaluation 200: seconds for 200 games against weak"] == 0.5
    assert all(figure["reached"] for figure in data["figures"])
    assert data["machine"]["threads"] == 1
    assert data["versions"]["shoal"]["torch"] == torch.__version__

    written = (tmp_path / "learning-cpu.md").read_text()
    assert "3 interleaved rounds of 0.5 s." in written
    for text in (written, capsys.readouterr().out):
        for part in ("SAC updates x 256, sb3-sac", "PPO x 16", "games/s", "reached", "rate 800"):
            assert part in text
        row = next(line for line in text.splitlines() if "num_envs=8" in line)
        assert "2.00" in row
        assert "5,661" in row


def test_what_fails_is_told_in_a_line_and_nothing_is_written_of_a_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scripted(monkeypatch, {name: rate for name, rate in RATES.items() if "sb3" not in name})
    settings = LearningSettings(rounds=3)
    assert not measure_learning(settings, planned(settings, "updates"), None)
    told = capsys.readouterr().out
    assert "- sb3-sac failed (SAC updates 256): ImportError: no sb3-sac here" in told
    assert told.count("MISSED") == 3
    assert CURRICULUM not in told


def test_the_command_hands_on_what_was_chosen(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    handed: list[Any] = []

    def note(*given: Any) -> bool:
        handed[:] = given
        return True

    def status_of(*arguments: str) -> int:
        handed.clear()
        monkeypatch.setattr("sys.argv", ["benchmarks", "learning", *arguments])
        return main()

    monkeypatch.setattr("benchmarks.learning.measuring.measure_learning", note)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # the command would replace a handler
    chosen = ["--rounds", "2", "--steps", "80", "--num-envs", "64", "--output", str(tmp_path)]
    assert status_of(*chosen) == 0
    assert handed[0] == LearningSettings(rounds=2, steps=80, ppo_envs=64)
    assert len(handed[1].figures) == 7
    assert handed[2] == tmp_path
    assert status_of("--only", "PPO") == 0
    assert handed[2] is None

    assert status_of("--only", "chess") == 2
    assert "contains 'chess'" in capsys.readouterr().err
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert status_of("--device", "cuda") == 2
    assert "no GPU" in capsys.readouterr().err
    assert not handed
