"""Goals: a training counts if the run and the saved agent reach the return of the config."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.learning import goals
from benchmarks.learning.goals import Training


@pytest.fixture
def config(tmp_path: Path) -> Any:
    """Write a short config with this goal."""

    def write(goal: float) -> str:
        path = tmp_path / "short.json"
        config = {
            "task": {"id": "CartPole-v1"},
            "curriculum": {"phases": [{"name": "balance", "steps": 400}]},
            "training": {
                "warmup_steps": 300,
                "eval_freq_steps": 200,
                "eval_num_games": 2,
                "video_episodes": 0,
                "stop_at_reward": goal,
            },
            "agent": {"type": "DDDQN", "hyperparameters": {"hidden_dim": [8]}},
        }
        path.write_text(json.dumps(config))
        return str(path)

    return write


def test_the_time_of_a_training_is_the_time_of_the_call(config: Any) -> None:
    start = time.perf_counter()
    elapsed = Training(config(5.0)).sample(0.0)
    assert 0.01 < elapsed < time.perf_counter() - start


def test_a_run_that_does_not_reach_the_goal_fails(config: Any) -> None:
    with pytest.raises(RuntimeError, match=r"seed 0 reached a mean return of .*; expected 501"):
        Training(config(501.0)).sample(0.0)


def test_a_saved_agent_that_does_not_reach_the_goal_fails(
    config: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(goals, "play_episodes", lambda *_, **__: (np.full(100, 4.0), None))
    with pytest.raises(RuntimeError, match=r"reached a mean return of 4\.0; expected 5"):
        Training(config(5.0)).sample(0.0)


def test_every_round_has_another_seed(config: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    def train(*_: object, seed: int, **__: object) -> None:
        seeds.append(seed)
        raise RuntimeError("enough")

    monkeypatch.setattr(goals, "train_single_run", train)
    training = Training(config(5.0))
    for _ in range(3):
        with pytest.raises(RuntimeError, match="enough"):
            training.sample(0.0)
    assert seeds == [0, 1, 2]


def test_a_goal_needs_a_return_at_which_training_stops() -> None:
    with pytest.raises(ValueError, match="the config hockey_ppo has no stop_at_reward"):
        Training("hockey_ppo")
