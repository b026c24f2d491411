"""Agents that a config names are copied: a run is resumed with those it was begun with."""

import shutil

import pytest

from shoal.errors import CheckpointError
from shoal.train import DDDQN, make_agent, resume_run
from shoal.train._tasks.hockey_task import hockey_spaces
from tests.train.runs.making import HOCKEY, differences, last_state, made_config, trained


def opponent(path, seed):
    make_agent("DDDQN", hockey_spaces(), {"hidden_dim": [8], "buffer_size": 1}, seed=seed).save(
        path
    )


def config(path):
    phase = {"name": "only", "steps": 300, "opponent": {"type": "self_play"}}
    phase["opponent"]["checkpoint"] = str(path)
    return made_config(
        "DDDQN", HOCKEY, [phase], checkpoint_save_freq=100, eval_opponents=["weak", str(path)]
    )


def test_a_run_is_resumed_with_the_opponents_that_it_was_begun_with(tmp_path):
    path = tmp_path / "other.agent"
    opponent(path, seed=1)
    trained(config(path), tmp_path, "whole")
    shutil.copytree(tmp_path / "whole", tmp_path / "again")
    opponent(path, seed=2)  # somebody goes on training it
    first = sorted((tmp_path / "again" / "checkpoints").iterdir())[0].name
    resume_run(tmp_path / "again", first, verbose=False)
    assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "again"))
    path.unlink()
    resume_run(tmp_path / "again", verbose=False)


def test_nothing_of_a_copy_is_left_where_the_run_cannot_begin(tmp_path, monkeypatch):
    path = tmp_path / "other.agent"
    opponent(path, seed=1)
    monkeypatch.setattr("shoal.train._single_run.Run.begin", lambda _: 1 / 0)
    try:
        trained(config(path), tmp_path, "never")
    except ZeroDivisionError:
        assert [each.name for each in tmp_path.iterdir()] == ["other.agent"]
    else:
        raise AssertionError("it has begun")


@pytest.mark.parametrize("spelled", ["./other.agent", "folder/../other.agent", "old/", "./old"])
def test_however_the_path_is_spelled(tmp_path, monkeypatch, spelled):
    """The run goes on when what was named is gone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "old").mkdir()
    for name in ("other.agent", "old/best.agent"):
        opponent(tmp_path / name, seed=1)
    trained(config(spelled), tmp_path, "run")
    (tmp_path / "other.agent").unlink()
    shutil.rmtree(tmp_path / "old")
    first = sorted((tmp_path / "run" / "checkpoints").iterdir())[0].name
    assert resume_run(tmp_path / "run", first, verbose=False)["total_steps"] == 300


def test_an_agent_that_does_not_fit_is_called_as_it_was_given(tmp_path):
    path = tmp_path / "other.agent"
    opponent(path, seed=1)
    with pytest.raises(CheckpointError, match=r"other\.agent is of DDDQN, not of SAC"):
        trained(made_config("SAC", HOCKEY), tmp_path, checkpoint_path=path)


class TestExploringWithWhatWasLearnt:
    def epsilons(self, monkeypatch, tmp_path, name, **settings):
        found, progressed = [], DDDQN.progressed

        def seen(agent, steps, share):
            progressed(agent, steps, share)
            found.append(agent.epsilon)

        with monkeypatch.context() as patched:
            patched.setattr(DDDQN, "progressed", seen)
            trained(made_config(steps=100), tmp_path, name, **settings)
        return found

    def test_no_more_than_who_had_learnt_it(self, tmp_path, monkeypatch):
        """Its epsilon had fallen from 1 over a half of 200 steps."""
        first = self.epsilons(monkeypatch, tmp_path, "first")
        assert first[0] > 0.95
        old = tmp_path / "first" / "final.agent"
        second = self.epsilons(monkeypatch, tmp_path, "second", checkpoint_path=old)
        assert second[0] < first[-1]
        assert second == sorted(second, reverse=True)

    def test_a_run_that_goes_on_goes_on_with_it(self, tmp_path):
        trained(made_config(steps=100), tmp_path, "first")
        old = tmp_path / "first" / "final.agent"
        config = made_config(steps=200, checkpoint_save_freq=100)
        trained(config, tmp_path, "whole", checkpoint_path=old)
        shutil.copytree(tmp_path / "whole", tmp_path / "again")
        old.unlink()
        resume_run(tmp_path / "again", "step-000000000100.checkpoint", verbose=False)
        assert not differences(last_state(tmp_path / "whole"), last_state(tmp_path / "again"))

    def test_an_exploiter_does_not_act_at_random_either(self, tmp_path, monkeypatch):
        path = tmp_path / "old.agent"
        opponent(path, seed=1)
        drawn = []
        monkeypatch.setattr(DDDQN, "random_actions", drawn.append)
        phase = {"name": "only", "steps": 60, "opponent": {"type": "league"}}
        league = {"exploiter_share": 0.5}
        made = made_config("DDDQN", HOCKEY, [phase], league=league, warmup_steps=30)
        trained(made, tmp_path, checkpoint_path=path)
        assert not drawn
