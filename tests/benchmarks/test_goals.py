"""Goals: a training counts by what it has reached and how long that took."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.learning import goals
from benchmarks.learning.goals import GOALS, Goal, measure_goals


def short_config(folder: Path, promised: float) -> str:
    path = folder / "short.json"
    config = {
        "task": {"id": "CartPole-v1"},
        "curriculum": {"phases": [{"name": "balance", "steps": 400}]},
        "training": {
            "warmup_steps": 300,
            "eval_freq_steps": 200,
            "eval_num_games": 2,
            "video_episodes": 0,
            "stop_at_reward": promised,
        },
        "agent": {"type": "DDDQN", "hyperparameters": {"hidden_dim": [8]}},
    }
    path.write_text(json.dumps(config))
    return str(path)


def test_the_goals_are_those_of_the_issue() -> None:
    assert [(goal.config, goal.mean, goal.seconds) for goal in GOALS] == [
        ("cartpole_dddqn", 475, 120),
        ("pendulum_sac", -200, 300),
    ]


@pytest.mark.parametrize(("promised", "reached"), [(5.0, True), (501.0, False)])
def test_what_was_not_reached_has_no_time(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    promised: float,
    reached: bool,
) -> None:
    config = short_config(tmp_path, promised)
    monkeypatch.setattr(goals, "GOALS", (Goal(config, 100.0),))
    assert measure_goals([3, 4], tmp_path / "results") == reached

    data = json.loads((tmp_path / "results" / "goals.json").read_text())
    attempts = data["attempts"]
    assert [each["seed"] for each in attempts] == [3, 4]
    assert [each["steps"] for each in attempts] == [200 if reached else 400] * 2
    [figure] = data["figures"]
    longest = max(each["seconds"] for each in attempts)
    assert figure["measured"] == (longest if reached else None)
    assert figure["reached"] == reached
    for text in (capsys.readouterr().out, (tmp_path / "results" / "goals.md").read_text()):
        assert ("reached" if reached else "MISSED") in text
        assert "seed 4" in text


def test_a_goal_needs_a_promise() -> None:
    with pytest.raises(ValueError, match="promises no return"):
        _ = Goal("hockey_ppo", 1.0).mean
