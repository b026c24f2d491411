"""Learning: the loops, updates and evaluations that are measured."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from benchmarks.learning import updates
from benchmarks.learning.evaluation import Games
from benchmarks.learning.exercise import Exercise
from benchmarks.learning.loops import Collecting, CurriculumSteps, PPOLearning
from benchmarks.learning.updates import AS_DQN, BATCH, ShoalUpdates, StableBaselinesUpdates
from benchmarks.turns import Measuring, take_turns

MODULE = "benchmarks.learning.cells"


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
    monkeypatch.setattr(updates, "_UPDATES_PER_CALL", 2)


class Slow(Exercise):
    """Does three units in 20 ms."""

    calls = 0

    def once(self) -> int:
        self.calls += 1
        time.sleep(0.02)
        return 3


def test_the_rate_is_the_amount_per_second_after_a_warm_up() -> None:
    exercise = Slow("cpu")
    assert 50 < exercise.sample(0.1) <= 150
    assert 2 <= exercise.calls <= 1 + 5


def test_an_exercise_is_done_at_least_once() -> None:
    exercise = Slow("cpu")
    done, elapsed = exercise.repeat(0.0)
    assert (done, exercise.calls) == (3, 1)
    assert elapsed >= 0.02


@pytest.mark.parametrize("num_envs", [1, 8])
def test_collecting_stores_transitions_and_does_not_update(num_envs: int) -> None:
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


def test_the_curriculum_makes_one_update_per_environment_step() -> None:
    loop = CurriculumSteps(4, "cpu", steps=16)
    assert not loop.run._parts.main.pace.is_warming_up
    steps, made = loop.run.steps, loop.run.updates
    assert loop.sample(0.0) > 0
    assert loop.run.steps - steps == 16 + 4  # one step of all slots is warm-up
    assert loop.run.updates - made == 20
    loop.close()


def test_ppo_learns_from_whole_rollouts() -> None:
    loop = PPOLearning(4, "cpu")
    made = loop.run.updates
    assert loop.once() == 64 * 4
    assert loop.run.updates - made == 3 * 8
    assert loop.sample(0.001) > 0
    loop.close()


def test_games_are_played_to_their_end() -> None:
    assert Games("weak", 5, "cpu").once() == 5


@pytest.mark.parametrize(
    ("kind", "hyperparameters"), [("SAC", {}), ("DDDQN", {}), ("DDDQN", AS_DQN)]
)
def test_updates_change_the_agent(
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
def test_both_libraries_update_equal_networks(few_rows: None, kind: str) -> None:
    pytest.importorskip("stable_baselines3")
    theirs = StableBaselinesUpdates(kind, "cpu")
    assert theirs.once() == 2
    assert theirs.model._n_updates == 3
    assert theirs.model.replay_buffer.size() == 600
    ours: Any = ShoalUpdates("DDDQN" if kind == "DQN" else kind, "cpu", **_same(kind)).agent

    def size(network: torch.nn.Module) -> int:
        return sum(parameter.numel() for parameter in network.parameters())

    if kind == "DQN":
        assert size(theirs.model.q_net) == size(ours.q_network)
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


def test_the_curriculum_fails_if_updates_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = CurriculumSteps(4, "cpu", steps=16)
    monkeypatch.setattr(type(loop.run), "updates", 100)
    with pytest.raises(RuntimeError, match="0 updates in 16 steps; expected one per step"):
        loop.sample(0.0)
    monkeypatch.undo()
    loop.close()


def test_a_missing_library_fails_and_the_others_are_measured(
    monkeypatch: pytest.MonkeyPatch, few_rows: None
) -> None:
    monkeypatch.setitem(sys.modules, "stable_baselines3", None)
    names = ["shoal-dddqn", "sb3-dqn"]
    settings = Measuring(rounds=2, seconds=0.001)
    cell = take_turns(MODULE, "DQN-updates", BATCH, names, settings)
    assert [len(rates) for rates in cell.rates.values()] == [2]
    assert list(cell.failures) == ["sb3-dqn"]
    assert "stable_baselines3" in cell.failures["sb3-dqn"]


def test_numbers_of_environments_are_contenders_of_the_curriculum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("benchmarks.learning.cells.CURRICULUM_STEPS", 16)
    names = ["num_envs=1", "num_envs=8"]
    cell = take_turns(MODULE, "curriculum", 8, names, Measuring(rounds=1))
    assert cell.failures == {}
    assert list(cell.rates) == names
