"""Agents that a config names are copied: a run is resumed with those it was begun with."""

import shutil

from shoal.train import make_agent, resume_run
from shoal.train.tasks.hockey_task import hockey_spaces
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
    monkeypatch.setattr("shoal.train.single_run.Run.begin", lambda _: 1 / 0)
    try:
        trained(config(path), tmp_path, "never")
    except ZeroDivisionError:
        assert [each.name for each in tmp_path.iterdir()] == ["other.agent"]
    else:
        raise AssertionError("it has begun")
