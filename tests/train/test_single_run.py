"""A run as users begin it: what it returns, what it leaves, and what it refuses."""

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
from tests.train.runs.making import (
    HOCKEY,
    checkpoints,
    differences,
    episodes,
    last_state,
    made_config,
    network,
    trained,
)


@pytest.fixture
def without_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


def test_everything_is_in_one_folder(tmp_path):
    config = made_config(steps=300, video_episodes=1, checkpoint_save_freq=100)
    result = trained(config, tmp_path, "mine", num_envs=3)
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
    told = [float(line["reward"]) for line in episodes(folder)]
    assert result["mean_reward"] == pytest.approx(np.mean(told[-100:]))
    assert result["final_reward"] == told[-1]


@pytest.mark.usefixtures("without_plots")
class TestNames:
    def test_a_run_is_named_after_what_it_is(self, tmp_path):
        names = [
            trained(made_config(steps=10), tmp_path, None, num_envs=count)["run_name"]
            for count in (1, 4, 4)
        ]
        assert re.fullmatch(r"\d{4}-\d\d-\d\d_\d\d-\d\d-\d\d_DDDQN", names[0])
        assert "_DDDQN_vec4" in names[1]
        assert len(set(names)) == 3
        assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)

    def test_a_run_does_not_write_over_another(self, tmp_path):
        trained(made_config(steps=10), tmp_path)
        before = (tmp_path / "run" / "final.agent").read_bytes()
        with pytest.raises(FileExistsError, match="shoal resume"):
            trained(made_config(steps=20), tmp_path)
        assert (tmp_path / "run" / "final.agent").read_bytes() == before


@pytest.mark.usefixtures("without_plots")
class TestSeeds:
    @pytest.mark.parametrize("kind", ["DDDQN", "SAC", "PPO"])
    def test_the_same_seed_is_the_same_run(self, tmp_path, kind):
        phase = {"name": "only", "steps": 200}
        phase["opponent"] = {"type": "self_play", "deterministic": False}
        config = made_config(kind, HOCKEY, [phase], max_episode_steps=20)
        first, again, other = (tmp_path / name for name in ("first", "again", "other"))
        for folder, seed in ((first, 5), (again, 5), (other, 6)):
            torch.rand(3)  # global generators are of no importance
            np.random.rand(3)
            trained(config, tmp_path, folder.name, num_envs=3, seed=seed)
        assert not differences(last_state(first), last_state(again))
        assert episodes(first) == episodes(again)
        assert differences(network(first / "final.agent"), network(other / "final.agent"))

    def test_global_generators_are_left_alone(self, tmp_path):
        torch.manual_seed(0)
        np.random.seed(0)
        before = torch.get_rng_state().clone(), np.random.get_state()[1].copy()
        trained(made_config("SAC", HOCKEY, steps=100, max_episode_steps=20), tmp_path)
        assert torch.equal(before[0], torch.get_rng_state())
        assert np.array_equal(before[1], np.random.get_state()[1])

    def test_without_a_seed_runs_are_different(self, tmp_path):
        for name in ("first", "second"):
            trained(made_config(steps=100), tmp_path, name, seed=None)
        both = [network(tmp_path / name / "final.agent") for name in ("first", "second")]
        assert differences(*both)

    def test_the_config_can_say_it(self, tmp_path):
        config = structs.replace(made_config(steps=100), seed=9, num_envs=4)
        trained(config, tmp_path, "said", seed=None, num_envs=None)
        trained(made_config(steps=100), tmp_path, "given", seed=9, num_envs=4)
        assert not differences(last_state(tmp_path / "said"), last_state(tmp_path / "given"))

    @pytest.mark.parametrize("num_envs", [1, 2, 16])
    def test_any_number_of_environments(self, tmp_path, num_envs):
        result = trained(made_config(steps=160), tmp_path, num_envs=num_envs)
        assert result["total_steps"] == 160
        assert result["total_gradient_steps"] == 110


@pytest.mark.usefixtures("without_plots")
class TestPythonEnvironments:
    @pytest.mark.parametrize("kind", ["DDDQN", "SAC"])
    def test_in_processes(self, tmp_path, kind):
        task = "CartPole-v1" if kind == "DDDQN" else "Pendulum-v1"
        config = made_config(kind, task, steps=120, arguments={"backend": "process"})
        result = trained(config, tmp_path, num_envs=2)
        assert result["total_gradient_steps"] == 70

    def test_as_a_kernel_does_it(self, tmp_path):
        """Gymnasium's CartPole next to ours: the same numbers, so the same agent."""
        for backend in ("inline", "auto"):
            config = made_config(steps=150, arguments={"backend": backend})
            trained(config, tmp_path, backend, num_envs=2)
        assert not differences(*(network(tmp_path / b / "final.agent") for b in ("inline", "auto")))

    def test_a_video_that_cannot_be_made_does_not_end_a_run(self, tmp_path):
        """Whatever the environment says when it is asked for pictures."""
        arguments = {"backend": "inline"}
        config = made_config(
            task="TrainCounting-v0", steps=60, arguments=arguments, video_episodes=1
        )
        with pytest.warns(RuntimeWarning, match="there is no video"):
            result = trained(config, tmp_path)
        assert result["total_steps"] == 60
        assert (tmp_path / "run" / "report.html").exists()

    def test_an_environment_that_fails_ends_the_run_with_its_error(self, tmp_path):
        class Failing(test_tasks.Counting):
            def step(self, action):
                if self.episode == 3:
                    raise RuntimeError("the battery is empty")
                return super().step(action)

        gymnasium.register("TrainFailing-v0", entry_point=Failing)
        config = made_config(task="TrainFailing-v0", steps=200, arguments={"backend": "inline"})
        with pytest.raises(Exception, match="the battery is empty"):
            trained(config, tmp_path)


@pytest.mark.usefixtures("without_plots")
class TestBeginningWithAnAgent:
    def test_it_goes_on_learning_what_that_had_learnt(self, tmp_path):
        trained(made_config(steps=200), tmp_path, "old")
        old = tmp_path / "old"
        for place in (old / "final.agent", checkpoints(old)[-1], old):
            trained(
                made_config(steps=100, warmup_steps=200), tmp_path, f"from-{place.name}",
                checkpoint_path=place,
            )  # fmt: skip
            begun = tmp_path / f"from-{place.name}"
            wanted = "best.agent" if place == old else "final.agent"
            assert not differences(network(old / wanted), network(begun / "final.agent"))

    def test_what_does_not_fit_is_refused(self, tmp_path):
        trained(made_config(steps=60), tmp_path, "old")
        with pytest.raises(CheckpointError, match="is of DDDQN, not of PPO"):
            trained(made_config("PPO"), tmp_path, checkpoint_path=tmp_path / "old" / "final.agent")
        wider = made_config(settings={"hidden_dim": [9]})
        with pytest.raises(CheckpointError, match="hidden_dim"):
            trained(wider, tmp_path, checkpoint_path=tmp_path / "old" / "final.agent")
        with pytest.raises(CheckpointError, match="there is no agent"):
            trained(made_config(), tmp_path, checkpoint_path=tmp_path / "nobody")
        assert sorted(path.name for path in tmp_path.iterdir()) == ["old"]


@pytest.mark.usefixtures("without_plots")
class TestMistakes:
    @pytest.mark.parametrize("num_envs", [0, -1, 2.5, True, "4"])
    def test_numbers_of_environments(self, tmp_path, num_envs):
        with pytest.raises(ValueError, match="num_envs must be a positive integer"):
            trained(made_config(), tmp_path, num_envs=num_envs)

    @pytest.mark.parametrize("name", ["eval_num_games", "eval_freq_steps"])
    @pytest.mark.parametrize("value", [0, -1])
    def test_numbers_of_evaluations(self, tmp_path, name, value):
        with pytest.raises(ValueError, match=name):
            trained(made_config(), tmp_path, **{name: value})
        assert not list(tmp_path.iterdir())

    def test_nothing_is_left_of_a_run_that_could_not_begin(self, tmp_path):
        cases = [
            (made_config("DDDQN", "Pendulum-v1"), {}),  # no action_fineness
            (made_config("SAC", "CartPole-v1"), {}),
            (made_config("SAC", HOCKEY, league={"exploiter_share": 0.5}), {"num_envs": 1}),
        ]
        for config, more in cases:
            with pytest.raises(ConfigError):
                trained(config, tmp_path, **more)
        assert not list(tmp_path.iterdir())

    def test_a_setting_of_an_agent_that_is_unknown(self, tmp_path):
        with pytest.raises(ConfigError, match=r"hiden_dim is unknown; did you mean .*hidden_dim"):
            trained(made_config(settings={"hiden_dim": [4]}), tmp_path)

    def test_an_environment_that_is_unknown(self, tmp_path):
        with pytest.raises(ConfigError, match="CartPol"):
            trained(made_config(task="CartPol-v1"), tmp_path)

    def test_arguments_that_an_environment_does_not_take(self, tmp_path):
        with pytest.raises(ConfigError, match="gravitas"):
            trained(made_config(arguments={"gravitas": 3}), tmp_path)

    def test_a_device_that_is_none(self, tmp_path):
        with pytest.raises(ValueError, match="graphics"):
            trained(made_config(), tmp_path, device="graphics")

    def test_a_batch_of_one_step_does_not_ruin_ppo(self, tmp_path):
        """One sample has no deviation: it is refused, or learnt from, but never NaN."""
        config = made_config("PPO", steps=64, settings={"rollout_steps": 4, "minibatches": 4})
        try:
            trained(config, tmp_path, num_envs=1)
        except ConfigError as error:
            assert "minibatches" in str(error)  # noqa: PT017
        else:
            values = network(tmp_path / "run" / "final.agent").values()
            assert all(np.isfinite(value).all() for value in values)


@pytest.mark.usefixtures("without_plots")
def test_annealing_is_felt(tmp_path):
    """Towards the end hardly anything changes any more."""
    for anneal in (True, False):
        config = made_config("PPO", steps=1600, settings={"anneal": anneal})
        trained(config, tmp_path, str(anneal))
    both = [network(tmp_path / name / "final.agent") for name in ("True", "False")]
    assert differences(*both)


@pytest.mark.usefixtures("without_plots")
def test_a_gpu_that_is_not_there_is_warned_of(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    for device in ("cuda", "cuda:1", 3):
        with pytest.warns(UserWarning, match="no GPU that torch can use: training on cpu"):
            result = trained(made_config(steps=60), tmp_path, str(device), device=device)
        assert result["total_steps"] == 60


@pytest.mark.usefixtures("without_plots")
def test_a_goal_ends_a_run(tmp_path):
    config = made_config(steps=1000, stop_at_reward=1.0)
    result = trained(config, tmp_path, eval_freq_steps=100)
    assert result["total_steps"] == 100
    assert result["total_gradient_steps"] == 50
    assert len(result["evaluation_results"]) == 1


@pytest.mark.usefixtures("without_plots")
def test_nothing_is_shown_where_nothing_is_wanted(tmp_path, capfd):
    trained(made_config(steps=60), tmp_path)
    assert capfd.readouterr() == ("", "")


def test_a_config_may_be_a_file_or_itself(tmp_path):
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
