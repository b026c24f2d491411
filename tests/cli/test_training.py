"""``shoal train``, ``eval``, ``resume``, ``tournament`` and ``watch``."""

import json
import re

import pytest
from typer.testing import CliRunner

from shoal._cli.app import app
from shoal.train._config import parse_config
from shoal.train._reporting import reporter
from shoal.train._runs.folder import RunFolder

SMALL = {"hidden_dim": [8], "batch_size": 8, "buffer_size": 1000}
POLE = {
    "task": {"id": "CartPole-v1"},
    "curriculum": {"phases": [{"name": "only", "steps": 200}]},
    "agent": {"type": "DDDQN", "hyperparameters": SMALL},
    "training": {
        "warmup_steps": 50,
        "video_episodes": 0,
        "eval_num_games": 2,
        "checkpoint_save_freq": 100,
    },
}
GAME = POLE | {
    "task": {"id": "shoal/Hockey-v0"},
    "training": POLE["training"] | {"max_episode_steps": 20},
}


@pytest.fixture(autouse=True)
def without_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)
    monkeypatch.setenv("COLUMNS", "200")


def shoal(*arguments):
    """Return the exit status, and the output on both streams."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def config(tmp_path):
    """Writes configs and returns their paths."""

    def write(raw, name="config.json"):
        (tmp_path / name).write_text(json.dumps(raw))
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folders of three runs: one of CartPole and two of hockey."""
    folder = tmp_path_factory.mktemp("runs")
    from shoal.train import train_single_run

    folders = {}
    for name, raw, seed in (("pole", POLE, 0), ("game", GAME, 0), ("other", GAME, 1)):
        train_single_run(
            parse_config(raw), folder, name, verbose=False, device="cpu", num_envs=2, seed=seed
        )
        folders[name] = folder / name
    return folders


def test_train_prints_a_summary_and_writes_the_run(tmp_path, config):
    status, output = shoal(
        "train", config(POLE), "--num-envs", 4, "--device", "cpu", "--seed", 0,
        "--output", tmp_path, "--name", "mine",
    )  # fmt: skip
    assert status == 0
    assert "200 steps" in output
    assert "150 updates" in output
    assert f"{tmp_path / 'mine'}/report.html" in output
    plan = json.loads((tmp_path / "mine" / "run.json").read_text())
    assert (plan["num_envs"], plan["seed"], plan["device"]) == (4, 0, "cpu")


def test_train_quiet_prints_one_line(tmp_path, config):
    status, output = shoal(
        "train", config(POLE), "--output", tmp_path, "--quiet", "--device", "cpu"
    )
    assert status == 0
    assert len(output.strip().splitlines()) == 1


def test_train_from_an_agent(tmp_path, config, runs):
    options = ["--output", tmp_path, "--device", "cpu", "--quiet"]
    status, _ = shoal("train", config(POLE), "--start-from", runs["pole"], *options)
    assert status == 0


def test_resume(tmp_path, config):
    shoal("train", config(POLE), "--output", tmp_path, "--name", "mine", "--quiet",
          "--device", "cpu")  # fmt: skip
    status, output = shoal(
        "resume", tmp_path / "mine", "--checkpoint", "step-000000000100.checkpoint"
    )
    assert status == 0
    assert "200 steps" in output
    status, output = shoal("resume", tmp_path / "mine", "--quiet", "--device", "cpu")
    assert status == 0


def test_a_run_in_use_is_reported_in_one_line(tmp_path, config, monkeypatch):
    shoal("train", config(POLE), "--output", tmp_path, "--name", "mine", "--device", "cpu")
    monkeypatch.setattr("shoal.train._runs.folder._PATIENCE", 0.0)
    with RunFolder(tmp_path / "mine").held():
        assert "is in use" in error_line("resume", tmp_path / "mine")


def test_divergence_is_reported_in_one_line(tmp_path, config):
    settings = SMALL | {"learning_rate": 1e30}
    wild = POLE | {"agent": {"type": "DDDQN", "hyperparameters": settings}}
    line = error_line("train", config(wild), "--output", tmp_path, "--quiet", "--device", "cpu")
    assert "the agent has diverged" in line


def test_eval_in_hockey_uses_both_scripted_opponents(runs):
    status, output = shoal("eval", runs["game"], "--games", 6)
    assert status == 0
    rows = [line for line in output.splitlines() if re.search(r"weak|strong", line)]
    assert len(rows) == 2
    for row in rows:
        _, games, won, _, drawn, lost, *_ = (cell.strip() for cell in row.strip("│").split("│"))
        assert games == "6"
        wins = round(float(won.rstrip("%")) * 6 / 100)
        assert wins + int(drawn) + int(lost) == 6


def test_eval_against_agents(runs):
    other = runs["other"] / "final.agent"
    status, output = shoal("eval", runs["game"] / "final.agent", "--opponent", other,
                         "--opponent", "weak", "--games", 3)  # fmt: skip
    assert status == 0
    assert "final.agent" in output


def test_eval_without_opponents(runs):
    for agent in (runs["pole"], runs["pole"] / "best.agent"):
        status, output = shoal("eval", agent, "--games", 7)
        assert status == 0
        assert re.search(r"│\s*7\s*│", output)


def test_eval_is_reproducible_with_the_same_seed(runs):
    first, again, other = (
        shoal("eval", runs["game"], "--games", 9, "--seed", s) for s in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_eval_of_a_checkpoint_uses_the_environment_of_its_run(runs):
    checkpoint = next((runs["pole"] / "checkpoints").glob("*.checkpoint"))
    status, output = shoal("eval", checkpoint, "--games", 3)
    assert status == 0, output


def test_tournament(runs):
    status, output = shoal("tournament", runs["game"], runs["other"] / "final.agent", "weak",
                         "strong", "--games", 4)  # fmt: skip
    assert status == 0
    for name in ("weak", "strong"):
        assert name in output


def test_watch_records_a_video_of_an_agent(tmp_path, runs):
    status, output = shoal("watch", runs["game"], "--episodes", 1, "--output", tmp_path / "it.mp4")
    assert status == 0
    assert output.strip() == str(tmp_path / "it.mp4")
    assert (tmp_path / "it.mp4").stat().st_size > 1000
    result, _ = json_result("watch", runs["pole"] / "final.agent", "--episodes", 1)
    assert result == {"video": str(runs["pole"] / "final.mp4")}
    assert (runs["pole"] / "final.mp4").exists()


# JSON output


def json_result(*arguments):
    """Return the result, which must be the only content of standard output, and standard error."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=pytest.fail), result.stderr


def test_train_and_resume_print_the_result_as_json_and_progress_to_stderr(tmp_path, config):
    result, progress = json_result(
        "train", config(POLE), "--device", "cpu", "--output", tmp_path, "--name", "mine"
    )
    assert (result["total_steps"], result["run_folder"]) == (200, str(tmp_path / "mine"))
    assert "[mine]" in progress
    again, _ = json_result("resume", tmp_path / "mine", "--quiet")
    assert again["total_steps"] == 200


def test_means_are_null_if_no_episode_has_ended(tmp_path, config):
    short = POLE | {"curriculum": {"phases": [{"name": "only", "steps": 2}]}}
    result, _ = json_result("train", config(short), "--device", "cpu", "--output", tmp_path)
    assert (result["mean_reward"], result["final_reward"]) == (None, None)


def test_eval_and_tournament_print_json(runs):
    result, _ = json_result("eval", runs["pole"], "--games", 3)
    (record,) = result["evaluations"]
    assert (record["games"], record["win_rate"]) == (3, None)
    result, _ = json_result("tournament", "weak", "strong", "--games", 4)
    assert [player["place"] for player in result["players"]] == [1, 2]
    assert sum(pair["wins"] + pair["draws"] + pair["losses"] for pair in result["pairings"]) == 4


# Errors


def error_line(*arguments):
    """Return the error message, which must be one line."""
    status, output = shoal(*arguments)
    assert status == 1, output
    assert len(output.strip().splitlines()) == 1, output
    return output


def test_unknown_config_keys_are_reported_with_a_suggestion(tmp_path, config):
    train = ["--output", tmp_path / "runs", "--device", "cpu"]
    line = error_line("train", config(POLE | {"curiculum": {}}), *train)
    assert "config.json: curiculum is unknown; did you mean curriculum?" in line
    wrong = POLE | {"training": {"warmup_step": 3}}
    assert "training.warmup_step is unknown; did you mean training.warmup_steps?" in error_line(
        "train", config(wrong), *train
    )
    wrong = POLE | {"agent": {"type": "DDDQN", "hyperparameters": {"hiden_dim": [3]}}}
    assert "hiden_dim is unknown; did you mean agent.hyperparameters.hidden_dim?" in error_line(
        "train", config(wrong), *train
    )
    assert not list(tmp_path.glob("runs/*"))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"agent": {"type": "DQN"}}, "agent.type"),
        ({"agent": {"type": "SAC"}}, "expected continuous actions"),
        ({"curriculum": {"phases": []}}, "curriculum.phases"),
        ({"curriculum": {"phases": [{"name": "x"}]}}, "must have either episodes or steps"),
        ({"curriculum": {"phases": [{"name": "x", "steps": "3"}]}}, "curriculum.phases[0].steps"),
        ({"task": {"id": "CartPol-v1"}}, "CartPol"),
        ({"task": {"id": "CartPole-v1", "arguments": {"gravitas": 1}}}, "gravitas"),
        ({"task": {"id": "CartPole-v1", "arguments": {"backend": "gpu"}}}, "backend"),
        ({"task": {"id": "shoal/HockeyDiscrete-v0"}}, "Box actions"),
    ],
)
def test_invalid_configs(tmp_path, config, change, expected):
    path = config(POLE | change)
    line = error_line("train", path, "--output", tmp_path / "runs", "--device", "cpu")
    assert expected in line


def test_missing_files(tmp_path, config, runs):
    assert "there is no config" in error_line("train", tmp_path / "nothing.json")
    assert "has no run.json" in error_line("resume", tmp_path)
    assert "there is no run" in error_line("resume", tmp_path / "nothing")
    assert "there is no agent" in error_line("eval", tmp_path / "nothing.agent")
    assert "has no agent yet, and no checkpoint" in error_line("eval", tmp_path)
    assert "there is no agent" in error_line("eval", runs["game"], "--opponent", "medium")
    assert "there is no agent" in error_line("tournament", "weak", "medium")
    assert "there is no agent" in error_line("watch", tmp_path / "nothing.agent")
    assert "there is no agent" in error_line("watch", runs["game"], "--opponent", "medium")
    line = error_line("resume", runs["pole"], "--checkpoint", "step-7.checkpoint")
    assert "there is no checkpoint" in line
    assert "step-000000000200.checkpoint" in line
    line = error_line("train", config(POLE), "--start-from", tmp_path / "nothing")
    assert "there is no agent" in line


def test_files_of_the_wrong_type(tmp_path, config):
    (tmp_path / "broken.json").write_text('{"curriculum": ')
    assert "is not JSON" in error_line("train", tmp_path / "broken.json")
    (tmp_path / "list.json").write_text("[1, 2]")
    assert "list.json" in error_line("train", tmp_path / "list.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    assert "is not JSON" in error_line("train", tmp_path / "bytes.json")
    assert "is not a checkpoint or agent" in error_line("eval", config(POLE))
    (tmp_path / "empty.agent").write_bytes(b"")
    assert "is not a checkpoint or agent" in error_line("eval", tmp_path / "empty.agent")


def test_a_run_with_the_same_name_exists(tmp_path, config):
    arguments = ["train", config(POLE), "--output", tmp_path, "--name", "mine", "--quiet",
                 "--device", "cpu"]  # fmt: skip
    assert shoal(*arguments)[0] == 0
    assert "there is a run mine" in error_line(*arguments)


def test_an_output_folder_that_cannot_be_written_to(tmp_path, config):
    (tmp_path / "file").write_text("")
    line = error_line("train", config(POLE), "--output", tmp_path / "file", "--device", "cpu")
    assert str(tmp_path / "file") in line


def test_invalid_tournaments(runs):
    assert "two players or more" in error_line("tournament", "weak")
    assert "each once" in error_line("tournament", "weak", "weak")
    error_line("tournament", "weak", "strong", "--games", 3)


def test_agents_of_another_environment_are_rejected(runs):
    """For example, an agent for CartPole cannot play hockey."""
    error_line("eval", runs["pole"] / "final.agent", "--env", "shoal/Hockey-v0", "--games", 2)
    error_line("eval", runs["game"], "--opponent", runs["pole"], "--games", 2)
    error_line("tournament", runs["pole"], "weak", "--games", 2)
    error_line("watch", runs["pole"], "--env", "shoal/Hockey-v0", "--episodes", 1)
    error_line("watch", runs["game"], "--opponent", runs["pole"], "--episodes", 1)
    error_line("eval", runs["pole"], "--env", "CartPol-v1", "--games", 2)
    error_line("eval", runs["pole"], "--env", "Acrobot-v1", "--games", 2)


def test_unknown_devices(tmp_path, config, runs):
    error_line("train", config(POLE), "--device", "graphics", "--output", tmp_path / "runs")
    error_line("eval", runs["game"], "--device", "graphics", "--games", 2)


def test_a_missing_gpu_is_a_warning(tmp_path, config, runs, monkeypatch):
    """The CPU is used instead."""
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    options = ["--output", tmp_path / "runs", "--quiet"]
    with pytest.warns(UserWarning, match="no GPU"):
        assert shoal("train", config(POLE), "--device", "cuda", *options)[0] == 0
    with pytest.warns(UserWarning, match="no GPU"):
        assert shoal("eval", runs["game"], "--device", "cuda", "--games", 2)[0] == 0


def test_every_command_has_a_help_text():
    for command in ("train", "eval", "resume", "tournament", "watch"):
        status, output = shoal(command, "--help")
        assert status == 0
        assert command in output
