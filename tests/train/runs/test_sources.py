"""Training on functions, kernels, specs and remote servers."""

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
from tests.train.environments import heavy_cartpole
from tests.train.runs.small_runs import checkpoints, differences, last_state, make_config, train_run

ENV_FNS = [partial(heavy_cartpole, weight) for weight in (0.25, 0.5, 1.0)]


def config(**more):
    return make_config(task="mine", steps=120, arguments={"backend": "inline"}, **more)


@pytest.fixture
def training_observations(monkeypatch):
    """Record the observations of all training steps."""
    observations, step = [], Run._step

    def recorded(run):
        observations.append(run._parts.task.observations.copy())
        step(run)

    monkeypatch.setattr(Run, "_step", recorded)
    return observations


class TestFunctions:
    def test_one_function(self, tmp_path, training_observations):
        result = train_run(config(), tmp_path, env=ENV_FNS[0], num_envs=2)
        assert result["total_steps"] == 120
        assert np.array_equal(np.unique(np.concatenate(training_observations)[:, 3]), [0.25])

    def test_one_function_per_slot(self, tmp_path, training_observations):
        result = train_run(config(), tmp_path, env=ENV_FNS, num_envs=None)
        assert len(training_observations) == 40  # three slots
        assert np.array_equal(training_observations[0][:, 3], [0.25, 0.5, 1.0])
        assert result["evaluation_results"][-1]["games"] == 2

    def test_more_slots_than_functions(self, tmp_path, training_observations):
        train_run(config(), tmp_path, env=ENV_FNS, num_envs=4)
        assert np.array_equal(training_observations[0][:, 3], [0.25, 0.5, 1.0, 0.25])

    def test_process_backend(self, tmp_path):
        processes = make_config(task="mine", steps=60, arguments={"backend": "process"})
        assert train_run(processes, tmp_path, env=ENV_FNS[1])["total_steps"] == 60

    def test_resume_needs_env(self, tmp_path):
        train_run(config(checkpoint_save_freq=60), tmp_path, env=ENV_FNS, num_envs=3)
        folder = tmp_path / "run"
        checkpoints(folder)[-1].unlink()
        with pytest.raises(
            ValueError, match=r"in Python \(3 environments\): pass them again as env="
        ):
            resume_run(folder, verbose=False)
        with pytest.warns(UserWarning, match="all slots start new episodes"):
            assert resume_run(folder, verbose=False, env=ENV_FNS)["total_steps"] == 120

    def test_evaluation_needs_env(self, tmp_path):
        train_run(config(), tmp_path, env=ENV_FNS[0])
        with pytest.raises(ValueError, match="env="):
            evaluate_agent(tmp_path / "run", [], 3)
        (record,) = evaluate_agent(tmp_path / "run", [], 3, env=ENV_FNS[2])
        assert record.games == 3

    def test_video_needs_a_function_with_render_mode(self, tmp_path):
        train_run(config(), tmp_path, env=ENV_FNS[0])
        with pytest.raises(
            ValueError, match="does not render images: create it with a render_mode"
        ):
            film_agent(tmp_path / "run", None, "", 1, env=ENV_FNS[0])
        rendering = partial(heavy_cartpole, 1.0, "rgb_array")
        path = film_agent(tmp_path / "run", None, "", 1, env=rendering)
        assert path.stat().st_size > 0

    def test_run_without_render_mode_warns(self, tmp_path):
        with pytest.warns(
            RuntimeWarning, match="video could not be recorded.*does not render images"
        ):
            train_run(config(video_episodes=1), tmp_path, env=ENV_FNS[0])

    def test_error_in_function_is_raised(self, tmp_path):
        def failing():
            raise RuntimeError("environment failed")

        with pytest.raises(Exception, match="environment failed"):
            train_run(config(), tmp_path, env=failing)
        assert not list(tmp_path.iterdir())


def test_kernel_object_equals_kernel_id(tmp_path):
    train_run(make_config(steps=120), tmp_path, "by-name")
    kernel = builtin_kernel("CartPole-v1", {})
    train_run(make_config(task="mine", steps=120), tmp_path, "kernel", env=kernel)
    states = [last_state(tmp_path / name) for name in ("by-name", "kernel")]
    assert not differences(*states)


def test_hockey_as_env_id(tmp_path):
    result = train_run(make_config(steps=60), tmp_path, env="shoal/Hockey-v0", eval_num_games=2)
    assert {record["opponent"] for record in result["evaluation_results"]} == {"weak", "strong"}


def test_registered_spec_equals_its_id(tmp_path):
    spec = gymnasium.spec("shoal/Hockey-v0")
    train_run(make_config(steps=60, checkpoint_save_freq=30), tmp_path, env=spec, eval_num_games=2)
    folder = tmp_path / "run"
    checkpoints(folder)[-1].unlink()
    result = resume_run(folder, verbose=False)
    assert {record["opponent"] for record in result["evaluation_results"]} == {"weak", "strong"}
    (record,) = evaluate_agent(folder, ["weak"], 2, env=spec)
    assert record.opponent == "weak"


def test_modified_hockey_spec_is_rejected(tmp_path):
    """Its modes and opponents would silently be ignored."""
    spec = copy.deepcopy(gymnasium.spec("shoal/Hockey-v0"))
    spec.kwargs["discrete"] = True
    with pytest.raises(ConfigError, match="env: shoal/Hockey-v0 cannot be modified: pass its id"):
        train_run(make_config(steps=60), tmp_path, env=spec)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("num_envs", [None, 2])
def test_empty_list_is_rejected(tmp_path, num_envs):
    with pytest.raises(ConfigError, match="a vector needs at least one environment, got none"):
        train_run(config(), tmp_path, env=[], num_envs=num_envs)
    assert not list(tmp_path.iterdir())


def test_hockey_settings_are_rejected_for_other_environments(tmp_path):
    phases = [{"name": "only", "steps": 50, "opponent": {"type": "basic_weak"}}]
    game = make_config(task="shoal/Hockey-v0", phases=phases)
    with pytest.raises(ValueError, match="only shoal/Hockey-v0 has modes, opponents"):
        train_run(game, tmp_path, env=ENV_FNS[0])


@pytest.mark.parametrize("where", ["env", "config"])
def test_remote_environment_gives_the_same_agent(tmp_path, where):
    train_run(make_config(steps=120), tmp_path, "local")

    def vector(num_envs=1, autoreset_mode="NextStep"):
        return shoal.make("CartPole-v1", num_envs, autoreset_mode=autoreset_mode)

    with shoal.serve({"pole": vector}, "tcp://127.0.0.1:0") as server:
        url = f"{server.url}/pole"
        if where == "env":
            train_run(make_config(task="mine", steps=120), tmp_path, "remote", env=url)
        else:
            train_run(make_config(task=url, steps=120), tmp_path, "remote")
    local, remote = (last_state(tmp_path / name) for name in ("local", "remote"))
    assert not differences(local["trainees"], remote["trainees"])
