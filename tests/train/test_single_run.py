"""`train_single_run`: results, output files and invalid arguments."""

import json
import re

import gymnasium
import numpy as np
import pytest
import torch
from msgspec import structs

from shoal.errors import CheckpointError, ConfigError
from shoal.train import load_agent, train_single_run
from shoal.train._config import parse_config
from shoal.train._reporting import reporter
from tests.train import test_tasks
from tests.train.runs.small_runs import (
    HOCKEY,
    checkpoints,
    differences,
    episodes,
    last_state,
    make_config,
    network,
    train_run,
)


@pytest.fixture
def no_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


def test_all_output_is_in_one_folder(tmp_path):
    config = make_config(steps=300, video_episodes=1, checkpoint_save_freq=100)
    result = train_run(config, tmp_path, "mine", num_envs=3)
    folder = tmp_path / "mine"
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    for name in ("run.json", "result.json", "report.html", "best.agent", "final.agent",
                 "video.mp4", "checkpoints", "logs/episodes.csv", "logs/progress.csv",
                 "logs/evaluations.csv", "plots"):  # fmt: skip
        assert (folder / name).exists(), name
    assert list((folder / "plots").glob("*.png"))
    for name in ("run_name", "total_steps", "total_episodes", "total_gradient_steps",
                 "mean_reward", "final_reward", "evaluation_results"):  # fmt: skip
        assert name in result
    assert result["run_name"] == "mine"
    written = json.loads((folder / "result.json").read_text())
    assert written["total_steps"] == result["total_steps"] == 300
    rewards = [float(line["reward"]) for line in episodes(folder)]
    assert result["mean_reward"] == pytest.approx(np.mean(rewards[-100:]))
    assert result["final_reward"] == rewards[-1]


@pytest.mark.usefixtures("no_plots")
class TestNames:
    def test_default_name(self, tmp_path):
        names = [
            train_run(make_config(steps=10), tmp_path, None, num_envs=count)["run_name"]
            for count in (1, 4, 4)
        ]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_DDDQN", names[0])
        assert "_DDDQN_vec4" in names[1]
        assert len(set(names)) == 3
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)

    def test_existing_run_is_not_overwritten(self, tmp_path):
        train_run(make_config(steps=10), tmp_path)
        before = (tmp_path / "run" / "final.agent").read_bytes()
        with pytest.raises(FileExistsError, match="shoal resume"):
            train_run(make_config(steps=20), tmp_path)
        assert (tmp_path / "run" / "final.agent").read_bytes() == before


@pytest.mark.usefixtures("no_plots")
class TestSeeds:
    @pytest.mark.parametrize("kind", ["DDDQN", "SAC", "PPO"])
    def test_equal_seeds_give_equal_runs(self, tmp_path, kind):
        phase = {"name": "only", "steps": 200}
        phase["opponent"] = {"type": "self_play", "deterministic": False}
        config = make_config(kind, HOCKEY, [phase], max_episode_steps=20)
        first, again, other = (tmp_path / name for name in ("first", "again", "other"))
        for folder, seed in ((first, 5), (again, 5), (other, 6)):
            torch.rand(3)  # global generators must not matter
            np.random.rand(3)
            train_run(config, tmp_path, folder.name, num_envs=3, seed=seed)
        assert not differences(last_state(first), last_state(again))
        assert episodes(first) == episodes(again)
        assert differences(network(first / "final.agent"), network(other / "final.agent"))

    def test_global_generators_are_not_used(self, tmp_path):
        torch.manual_seed(0)
        np.random.seed(0)
        before = torch.get_rng_state().clone(), np.random.get_state()[1].copy()
        train_run(make_config("SAC", HOCKEY, steps=100, max_episode_steps=20), tmp_path)
        assert torch.equal(before[0], torch.get_rng_state())
        assert np.array_equal(before[1], np.random.get_state()[1])

    def test_runs_without_seed_differ(self, tmp_path):
        for name in ("first", "second"):
            train_run(make_config(steps=100), tmp_path, name, seed=None)
        both = [network(tmp_path / name / "final.agent") for name in ("first", "second")]
        assert differences(*both)

    def test_seed_in_config(self, tmp_path):
        config = structs.replace(make_config(steps=100), seed=9, num_envs=4)
        train_run(config, tmp_path, "config", seed=None, num_envs=None)
        train_run(make_config(steps=100), tmp_path, "argument", seed=9, num_envs=4)
        states = [last_state(tmp_path / name) for name in ("config", "argument")]
        assert not differences(*states)

    @pytest.mark.parametrize("num_envs", [1, 2, 16])
    def test_number_of_environments(self, tmp_path, num_envs):
        result = train_run(make_config(steps=160), tmp_path, num_envs=num_envs)
        assert result["total_steps"] == 160
        assert result["total_gradient_steps"] == 110


@pytest.mark.usefixtures("no_plots")
class TestPythonEnvironments:
    @pytest.mark.parametrize("kind", ["DDDQN", "SAC"])
    def test_process_backend(self, tmp_path, kind):
        task = "CartPole-v1" if kind == "DDDQN" else "Pendulum-v1"
        config = make_config(kind, task, steps=120, arguments={"backend": "process"})
        result = train_run(config, tmp_path, num_envs=2)
        assert result["total_gradient_steps"] == 70

    def test_result_equals_that_of_a_kernel(self, tmp_path):
        """Gymnasium's CartPole and the kernel give the same numbers, and so the same agent."""
        for backend in ("inline", "auto"):
            config = make_config(steps=150, arguments={"backend": backend})
            train_run(config, tmp_path, backend, num_envs=2)
        assert not differences(*(network(tmp_path / b / "final.agent") for b in ("inline", "auto")))

    def test_failing_video_does_not_fail_the_run(self, tmp_path):
        arguments = {"backend": "inline"}
        config = make_config(
            task="TrainCounting-v0", steps=60, arguments=arguments, video_episodes=1
        )
        with pytest.warns(RuntimeWarning, match="the video could not be recorded"):
            result = train_run(config, tmp_path)
        assert result["total_steps"] == 60
        assert (tmp_path / "run" / "report.html").exists()

    def test_environment_error_ends_the_run(self, tmp_path):
        class Failing(test_tasks.Counting):
            def step(self, action):
                if self.episode == 3:
                    raise RuntimeError("environment failed")
                return super().step(action)

        gymnasium.register("TrainFailing-v0", entry_point=Failing)
        config = make_config(task="TrainFailing-v0", steps=200, arguments={"backend": "inline"})
        with pytest.raises(Exception, match="environment failed"):
            train_run(config, tmp_path)


@pytest.mark.usefixtures("no_plots")
class TestInitialAgent:
    def test_training_starts_from_the_agents_parameters(self, tmp_path):
        train_run(make_config(steps=200), tmp_path, "old")
        old = tmp_path / "old"
        for path in (old / "final.agent", checkpoints(old)[-1], old):
            name = f"from-{path.name}"
            config = make_config(steps=100, warmup_steps=200)
            train_run(config, tmp_path, name, checkpoint_path=path)
            source = "best.agent" if path == old else "final.agent"
            assert not differences(network(old / source), network(tmp_path / name / "final.agent"))

    def test_incompatible_agent_raises(self, tmp_path):
        train_run(make_config(steps=60), tmp_path, "old")
        with pytest.raises(CheckpointError, match="is of DDDQN, not of PPO"):
            train_run(
                make_config("PPO"), tmp_path, checkpoint_path=tmp_path / "old" / "final.agent"
            )
        wider = make_config(settings={"hidden_dim": [9]})
        with pytest.raises(CheckpointError, match="hidden_dim"):
            train_run(wider, tmp_path, checkpoint_path=tmp_path / "old" / "final.agent")
        with pytest.raises(CheckpointError, match="there is no agent"):
            train_run(make_config(), tmp_path, checkpoint_path=tmp_path / "nobody")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


@pytest.mark.usefixtures("no_plots")
class TestInvalidArguments:
    @pytest.mark.parametrize("num_envs", [0, -1, 2.5, True, "4"])
    def test_num_envs(self, tmp_path, num_envs):
        with pytest.raises(ValueError, match="num_envs must be a positive integer"):
            train_run(make_config(), tmp_path, num_envs=num_envs)

    @pytest.mark.parametrize("name", ["eval_num_games", "eval_freq_steps"])
    @pytest.mark.parametrize("value", [0, -1])
    def test_evaluation_arguments(self, tmp_path, name, value):
        with pytest.raises(ValueError, match=name):
            train_run(make_config(), tmp_path, **{name: value})
        assert not list(tmp_path.iterdir())

    def test_failed_start_leaves_no_files(self, tmp_path):
        cases = [
            (make_config("DDDQN", "Pendulum-v1"), {}),  # no action_fineness
            (make_config("SAC", "CartPole-v1"), {}),
            (make_config("SAC", HOCKEY, league={"exploiter_share": 0.5}), {"num_envs": 1}),
        ]
        for config, more in cases:
            with pytest.raises(ConfigError):
                train_run(config, tmp_path, **more)
        assert not list(tmp_path.iterdir())

    def test_unknown_hyperparameter(self, tmp_path):
        with pytest.raises(ConfigError, match=r"hiden_dim is unknown; did you mean .*hidden_dim"):
            train_run(make_config(settings={"hiden_dim": [4]}), tmp_path)

    def test_unknown_environment(self, tmp_path):
        with pytest.raises(ConfigError, match="CartPol"):
            train_run(make_config(task="CartPol-v1"), tmp_path)

    def test_unknown_environment_argument(self, tmp_path):
        with pytest.raises(ConfigError, match="gravitas"):
            train_run(make_config(arguments={"gravitas": 3}), tmp_path)

    def test_unknown_device(self, tmp_path):
        with pytest.raises(ValueError, match="graphics"):
            train_run(make_config(), tmp_path, device="graphics")

    def test_ppo_minibatch_of_one_sample(self, tmp_path):
        """The config is rejected, or parameters stay finite: one sample has no deviation."""
        config = make_config("PPO", steps=64, settings={"rollout_steps": 4, "minibatches": 4})
        try:
            train_run(config, tmp_path, num_envs=1)
        except ConfigError as error:
            assert "minibatches" in str(error)  # noqa: PT017
        else:
            values = network(tmp_path / "run" / "final.agent").values()
            assert all(np.isfinite(value).all() for value in values)


@pytest.mark.usefixtures("no_plots")
def test_annealing_changes_the_result(tmp_path):
    for anneal in (True, False):
        config = make_config("PPO", steps=1600, settings={"anneal": anneal})
        train_run(config, tmp_path, str(anneal))
    both = [network(tmp_path / name / "final.agent") for name in ("True", "False")]
    assert differences(*both)


@pytest.mark.usefixtures("no_plots")
def test_missing_gpu_warns(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for device in ("cuda", "cuda:1", 3):
        with pytest.warns(UserWarning, match="no GPU that torch can use; training on cpu"):
            result = train_run(make_config(steps=60), tmp_path, str(device), device=device)
        assert result["total_steps"] == 60


@pytest.mark.usefixtures("no_plots")
def test_stop_at_reward_ends_the_run(tmp_path):
    config = make_config(steps=1000, stop_at_reward=1.0)
    result = train_run(config, tmp_path, eval_freq_steps=100)
    assert result["total_steps"] == 100
    assert result["total_gradient_steps"] == 50
    assert len(result["evaluation_results"]) == 1


@pytest.mark.usefixtures("no_plots")
def test_verbose_false_prints_nothing(tmp_path, capfd):
    train_run(make_config(steps=60), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_config_as_file_or_object(tmp_path):
    raw = {
        "task": {"id": "CartPole-v1"},
        "curriculum": {"phases": [{"name": "only", "steps": 20}]},
        "agent": {"type": "PPO"},
        "training": {"video_episodes": 0, "eval_num_games": 1},
    }
    file = tmp_path / "config.json"
    file.write_text(json.dumps(raw))
    for config in (file, str(file), parse_config(raw)):
        result = train_single_run(config, tmp_path / "runs", verbose=False, device="cpu")
        assert result["total_steps"] == 20
        assert load_agent(result["run_folder"]).kind == "PPO"
