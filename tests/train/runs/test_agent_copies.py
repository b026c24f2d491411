"""Copies of the agent files named in a config: a resumed run uses the same agents."""

import shutil

import pytest

from shoal.errors import CheckpointError
from shoal.train import DDDQN, make_agent, resume_run
from shoal.train._tasks.hockey_task import hockey_spaces
from tests.train.runs.small_runs import HOCKEY, differences, last_state, make_config, train_run


def save_opponent(path, seed):
    settings = {"hidden_dim": [8], "buffer_size": 1}
    make_agent("DDDQN", hockey_spaces(), settings, seed=seed).save(path)


def config(path):
    phase = {"name": "only", "steps": 300, "opponent": {"type": "self_play"}}
    phase["opponent"]["checkpoint"] = str(path)
    return make_config(
        "DDDQN", HOCKEY, [phase], checkpoint_save_freq=100, eval_opponents=["weak", str(path)]
    )


def test_resumed_run_uses_the_original_opponents(tmp_path):
    path = tmp_path / "other.agent"
    save_opponent(path, seed=1)
    train_run(config(path), tmp_path, "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "again")
    save_opponent(path, seed=2)  # replaced while the run is interrupted
    first = sorted((tmp_path / "again" / "checkpoints").iterdir())[0].name
    resume_run(tmp_path / "again", first, verbose=False)
    assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "again"))
    path.unlink()
    resume_run(tmp_path / "again", verbose=False)


def test_failed_start_removes_the_copies(tmp_path, monkeypatch):
    path = tmp_path / "other.agent"
    save_opponent(path, seed=1)
    monkeypatch.setattr("shoal.train._single_run.Run.initialize_agents", lambda _: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        train_run(config(path), tmp_path, "never")
    assert [file.name for file in tmp_path.iterdir()] == ["other.agent"]


@pytest.mark.parametrize("name", ["./other.agent", "folder/../other.agent", "old/", "./old"])
def test_run_resumes_without_the_original_file(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "old").mkdir()
    for file in ("other.agent", "old/best.agent"):
        save_opponent(tmp_path / file, seed=1)
    train_run(config(name), tmp_path, "run")
    (tmp_path / "other.agent").unlink()
    shutil.rmtree(tmp_path / "old")
    first = sorted((tmp_path / "run" / "checkpoints").iterdir())[0].name
    assert resume_run(tmp_path / "run", first, verbose=False)["total_steps"] == 300


def test_error_names_the_original_path(tmp_path):
    path = tmp_path / "other.agent"
    save_opponent(path, seed=1)
    with pytest.raises(CheckpointError, match=r"other\.agent is of DDDQN, not of SAC"):
        train_run(make_config("SAC", HOCKEY), tmp_path, checkpoint_path=path)


class TestExplorationWithInitialAgent:
    def epsilons(self, monkeypatch, tmp_path, name, **settings):
        epsilons, progressed = [], DDDQN.progressed

        def recorded(agent, steps, share):
            progressed(agent, steps, share)
            epsilons.append(agent.epsilon)

        with monkeypatch.context() as patched:
            patched.setattr(DDDQN, "progressed", recorded)
            train_run(make_config(steps=100), tmp_path, name, **settings)
        return epsilons

    def test_epsilon_starts_at_the_agents_epsilon(self, tmp_path, monkeypatch):
        """The agent's epsilon has decayed from 1 over half of its 200 steps."""
        first = self.epsilons(monkeypatch, tmp_path, "first")
        assert first[0] > 0.95
        old = tmp_path / "first" / "final.agent"
        second = self.epsilons(monkeypatch, tmp_path, "second", checkpoint_path=old)
        assert second[0] < first[-1]
        assert second == sorted(second, reverse=True)

    def test_resumed_run_does_not_need_the_initial_agent(self, tmp_path):
        train_run(make_config(steps=100), tmp_path, "first")
        old = tmp_path / "first" / "final.agent"
        config = make_config(steps=200, checkpoint_save_freq=100)
        train_run(config, tmp_path, "whole", checkpoint_path=old)
        shutil.copytree(tmp_path / "whole", tmp_path / "again")
        old.unlink()
        resume_run(tmp_path / "again", "step-000000000100.checkpoint", verbose=False)
        assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "again"))

    def test_exploiter_does_not_act_randomly(self, tmp_path, monkeypatch):
        path = tmp_path / "old.agent"
        save_opponent(path, seed=1)
        calls = []
        monkeypatch.setattr(DDDQN, "random_actions", calls.append)
        phase = {"name": "only", "steps": 60, "opponent": {"type": "league"}}
        league = {"exploiter_share": 0.5}
        league_config = make_config("DDDQN", HOCKEY, [phase], league=league, warmup_steps=30)
        train_run(league_config, tmp_path, checkpoint_path=path)
        assert not calls
