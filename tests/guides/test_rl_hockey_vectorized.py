"""The samples of the guide to training hockey on a vector."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from shoal.train import load_agent, load_config, train_single_run
from shoal.train._config import config_file, parse_config
from shoal.train._config.loading import SHIPPED
from shoal.train._runs.run import Run


def shrunken():
    """The complete config of the guide, shortened to a few seconds."""
    raw = json.loads((SHIPPED / "curriculum_simple.json").read_text())
    for phase, episodes in zip(raw["curriculum"]["phases"], (5, 4, 6), strict=True):
        phase["episodes"] = episodes
    raw["curriculum"]["phases"][0]["reward_shaping"] |= {"N": 2, "K": 2}
    raw["training"] |= {"max_episode_steps": 25, "warmup_steps": 60}
    raw["agent"]["hyperparameters"] |= {"hidden_dim": [16], "epsilon_steps": 300}
    raw["hyperparameters"]["batch_size"] = 16
    return raw


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder of the samples, with ``configs`` and without a GPU."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "configs" / "curriculum_simple.json").write_text(json.dumps(shrunken()))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    return tmp_path


def the_run(folder):
    """Return the folder of the only run."""
    (run,) = (folder / "results" / "runs").iterdir()
    return run


def phases_of(run):
    lines = (run / "logs" / "episodes.csv").read_text().splitlines()
    place = lines[0].split(",").index("phase")
    return [line.split(",")[place] for line in lines[1:]]


WANTED = ["shooting"] * 5 + ["defense"] * 4 + ["match"] * 6


class TestAsWritten:
    """Only the import line differs from the guide."""

    def test_before(self, folder):
        with pytest.warns(UserWarning, match="there is no cuda:1.* training on cpu"):
            train_single_run(
                "configs/curriculum_simple.json",
                device="cuda:1"
            )  # fmt: skip
        assert the_run(folder).name.endswith("_DDDQN")
        assert phases_of(the_run(folder)) == WANTED

    def test_after(self, folder):
        with pytest.warns(UserWarning, match="there is no cuda:1"):
            train_single_run(
                "configs/curriculum_simple.json",
                device="cuda:1",
                num_envs=4  # Add this line!
            )  # fmt: skip
        assert the_run(folder).name.endswith("_vec4")
        assert phases_of(the_run(folder)) == WANTED

    def test_for_maximum_speed(self, folder):
        with pytest.warns(UserWarning, match="there is no cuda:1"):
            train_single_run(
                "configs/curriculum_simple.json",
                device="cuda:1",
                num_envs=8  # Maximum speedup
            )  # fmt: skip
        assert the_run(folder).name.endswith("_vec8")
        assert phases_of(the_run(folder)) == WANTED

    def test_in_detail(self, folder, capsys):
        with pytest.warns(UserWarning, match="there is no cuda:1"):
            # Train with vectorized environments
            result = train_single_run(
                config_path="configs/curriculum_simple.json",
                base_output_dir="results/runs",
                run_name=None,  # Auto-generated with "_vec4" suffix
                verbose=True,
                eval_freq_steps=10000,
                eval_num_games=200,
                eval_weak_opponent=True,
                device="cuda:1",
                checkpoint_path=None,
                num_envs=4  # 1 = single env, 2-8 = vectorized
            )  # fmt: skip

        print(f"Training completed: {result['run_name']}")
        print(f"Total steps: {result['total_steps']}")
        print(f"Mean reward: {result['mean_reward']:.2f}")

        output = capsys.readouterr().out
        assert f"Training completed: {result['run_name']}" in output
        assert f"Total steps: {result['total_steps']}" in output
        assert result["run_name"].endswith("_vec4")
        assert result["total_episodes"] == 15
        assert result["total_gradient_steps"] == result["total_steps"] - 60
        (record,) = result["evaluation_results"]
        assert (record["opponent"], record["games"]) == ("weak", 200)
        run = the_run(folder)
        assert run.name == result["run_name"]
        for name in ("report.html", "video.mp4", "best.agent", "checkpoints", "plots"):
            assert (run / name).exists()


def test_continuous_actions(folder):
    """The guide supports DDDQN and SAC, discrete and continuous action spaces."""
    raw = shrunken()
    raw["agent"] = {"type": "SAC", "hyperparameters": {"hidden_dim": [16], "buffer_size": 5000}}
    raw["training"]["video_episodes"] = 0
    Path("configs/sac.json").write_text(json.dumps(raw))
    result = train_single_run("configs/sac.json", device="cpu", num_envs=3, verbose=False,
                              eval_num_games=4)  # fmt: skip
    assert result["total_episodes"] == 15
    agent = load_agent(result["run_folder"])
    assert agent.act_batch(np.zeros((5, 18)), deterministic=True).shape == (5, 4)
    assert agent.act(np.zeros(18)).shape == (4,)


def test_shipped_config_is_the_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert config_file("configs/curriculum_simple.json") == SHIPPED / "curriculum_simple.json"

    class StoppedError(Exception):
        pass

    def stop(run, reporter):
        assert run.plan.config == load_config(SHIPPED / "curriculum_simple.json")
        assert run.plan.num_envs == 8
        raise StoppedError

    monkeypatch.setattr(Run, "train", stop)
    with pytest.raises(StoppedError):
        train_single_run("configs/curriculum_simple.json", device="cpu", num_envs=8, verbose=False)


def test_own_file_takes_precedence(folder):
    assert load_config("configs/curriculum_simple.json") == parse_config(shrunken())
    assert load_config("configs/curriculum_simple.json") != load_config(
        SHIPPED / "curriculum_simple.json"
    )


def test_missing_file_elsewhere_is_an_error(tmp_path, monkeypatch):
    """A path that cannot name a shipped config is not replaced by one."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="curriculum_simple"):
        load_config("experiments/curriculum_simple.json")
    with pytest.raises(FileNotFoundError, match="cartpole_dddqn"):
        load_config("configs/curriculum_simpel.json")
