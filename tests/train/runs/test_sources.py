"""Trained on anything that Shoal makes a vector of: functions, kernels, servers."""

import copy
from functools import partial

import gymnasium
import numpy as np
import pytest

import shoal
from shoal._envs import builtin_kernel
from shoal.errors import ConfigError
from shoal.train import evaluate_agent, film_agent, resume_run
from shoal.train._runs.run import Run
from tests.train.environments import heavy
from tests.train.runs.making import checkpoints, differences, last_state, made_config, trained

WORLDS = [partial(heavy, weight) for weight in (0.25, 0.5, 1.0)]


def config(**more):
    return made_config(task="mine", steps=120, arguments={"backend": "inline"}, **more)


@pytest.fixture
def seen(monkeypatch):
    """What the agents of a test have seen in training."""
    found, step = [], Run._step

    def seeing(run):
        found.append(run._parts.task.observations.copy())
        step(run)

    monkeypatch.setattr(Run, "_step", seeing)
    return found


class TestFunctions:
    def test_one_for_all_slots(self, tmp_path, seen):
        result = trained(config(), tmp_path, env=WORLDS[0], num_envs=2)
        assert result["total_steps"] == 120
        assert np.array_equal(np.unique(np.concatenate(seen)[:, 3]), [0.25])

    def test_one_for_each_slot(self, tmp_path, seen):
        result = trained(config(), tmp_path, env=WORLDS, num_envs=None)
        assert len(seen) == 40  # three slots
        assert np.array_equal(seen[0][:, 3], [0.25, 0.5, 1.0])
        assert result["evaluation_results"][-1]["games"] == 2

    def test_more_slots_than_functions(self, tmp_path, seen):
        trained(config(), tmp_path, env=WORLDS, num_envs=4)
        assert np.array_equal(seen[0][:, 3], [0.25, 0.5, 1.0, 0.25])

    def test_in_processes(self, tmp_path):
        processes = made_config(task="mine", steps=60, arguments={"backend": "process"})
        assert trained(processes, tmp_path, env=WORLDS[1])["total_steps"] == 60

    def test_they_are_given_again_to_go_on(self, tmp_path):
        trained(config(checkpoint_save_freq=60), tmp_path, env=WORLDS, num_envs=3)
        folder = tmp_path / "run"
        checkpoints(folder)[-1].unlink()
        with pytest.raises(ValueError, match=r"3 environments.* in Python, as env=.*give them"):
            resume_run(folder, verbose=False)
        with pytest.warns(UserWarning, match="all slots begin new episodes"):
            assert resume_run(folder, verbose=False, env=WORLDS)["total_steps"] == 120

    def test_they_are_given_again_to_evaluate(self, tmp_path):
        trained(config(), tmp_path, env=WORLDS[0])
        with pytest.raises(ValueError, match="env="):
            evaluate_agent(tmp_path / "run", [], 3)
        (record,) = evaluate_agent(tmp_path / "run", [], 3, env=WORLDS[2])
        assert record.games == 3

    def test_they_say_themselves_whether_there_are_pictures(self, tmp_path):
        trained(config(), tmp_path, env=WORLDS[0])
        with pytest.raises(ValueError, match="gives no pictures: make it with a render_mode"):
            film_agent(tmp_path / "run", None, "", 1, env=WORLDS[0])
        seeing = partial(heavy, 1.0, "rgb_array")
        path = film_agent(tmp_path / "run", None, "", 1, env=seeing)
        assert path.stat().st_size > 0

    def test_a_video_that_a_run_cannot_have_is_warned_of(self, tmp_path):
        with pytest.warns(RuntimeWarning, match="no video.*gives no pictures"):
            trained(config(video_episodes=1), tmp_path, env=WORLDS[0])

    def test_what_fails_in_them_is_said(self, tmp_path):
        def failing():
            raise RuntimeError("the battery is empty")

        with pytest.raises(Exception, match="the battery is empty"):
            trained(config(), tmp_path, env=failing)
        assert not list(tmp_path.iterdir())


def test_a_kernel_is_trained_on_as_by_its_name(tmp_path):
    trained(made_config(steps=120), tmp_path, "by-name")
    kernel = builtin_kernel("CartPole-v1", {})
    trained(made_config(task="mine", steps=120), tmp_path, "kernel", env=kernel)
    states = [last_state(tmp_path / name) for name in ("by-name", "kernel")]
    assert not differences(*states)


def test_hockey_may_be_given_as_its_name(tmp_path):
    result = trained(made_config(steps=60), tmp_path, env="shoal/Hockey-v0", eval_num_games=2)
    assert {found["opponent"] for found in result["evaluation_results"]} == {"weak", "strong"}


def test_a_spec_that_is_registered_is_its_name(tmp_path):
    spec = gymnasium.spec("shoal/Hockey-v0")
    trained(made_config(steps=60, checkpoint_save_freq=30), tmp_path, env=spec, eval_num_games=2)
    folder = tmp_path / "run"
    checkpoints(folder)[-1].unlink()
    result = resume_run(folder, verbose=False)
    assert {found["opponent"] for found in result["evaluation_results"]} == {"weak", "strong"}
    (record,) = evaluate_agent(folder, ["weak"], 2, env=spec)
    assert record.opponent == "weak"


def test_hockey_of_ones_own_making_is_refused(tmp_path):
    """Its modes and opponents would be left out without a word."""
    spec = copy.deepcopy(gymnasium.spec("shoal/Hockey-v0"))
    spec.kwargs["discrete"] = True
    with pytest.raises(ConfigError, match="env: shoal/Hockey-v0 is trained on as it is registered"):
        trained(made_config(steps=60), tmp_path, env=spec)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("num_envs", [None, 2])
def test_there_must_be_one(tmp_path, num_envs):
    with pytest.raises(ConfigError, match="a vector needs at least one environment, got none"):
        trained(config(), tmp_path, env=[], num_envs=num_envs)
    assert not list(tmp_path.iterdir())


def test_what_belongs_to_hockey_is_refused_elsewhere(tmp_path):
    phases = [{"name": "only", "steps": 50, "opponent": {"type": "basic_weak"}}]
    game = made_config(task="shoal/Hockey-v0", phases=phases)
    with pytest.raises(ValueError, match="only shoal/Hockey-v0 has modes, opponents"):
        trained(game, tmp_path, env=WORLDS[0])


@pytest.mark.parametrize("where", ["env", "config"])
def test_on_a_server(tmp_path, where):
    """The same numbers as without one, so the same agent."""
    trained(made_config(steps=120), tmp_path, "here")

    def vector(num_envs=1, autoreset_mode="NextStep"):
        return shoal.make("CartPole-v1", num_envs, autoreset_mode=autoreset_mode)

    with shoal.serve({"pole": vector}, "tcp://127.0.0.1:0") as server:
        url = f"{server.url}/pole"
        if where == "env":
            trained(made_config(task="mine", steps=120), tmp_path, "there", env=url)
        else:
            trained(made_config(task=url, steps=120), tmp_path, "there")
    here, there = (last_state(tmp_path / name) for name in ("here", "there"))
    assert not differences(here["trainees"], there["trainees"])
