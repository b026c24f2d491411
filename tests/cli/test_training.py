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
    """The exit status, and what was said on both streams."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.output


@pytest.fixture
def config(tmp_path):
    """Writes configs, and gives their paths."""

    def write(raw, name="config.json"):
        (tmp_path / name).write_text(json.dumps(raw))
        return tmp_path / name

    return write


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The folders of three runs: on a pole, and two of hockey."""
    folder = tmp_path_factory.mktemp("runs")
    from shoal.train import train_single_run

    found = {}
    for name, raw, seed in (("pole", POLE, 0), ("game", GAME, 0), ("other", GAME, 1)):
        train_single_run(
            parse_config(raw), folder, name, verbose=False, device="cpu", num_envs=2, seed=seed
        )
        found[name] = folder / name
    return found


def test_training(tmp_path, config):
    status, told = shoal(
        "train", config(POLE), "--num-envs", 4, "--device", "cpu", "--seed", 0,
        "--output", tmp_path, "--name", "mine",
    )  # fmt: skip
    assert status == 0
    assert "200 steps" in told
    assert "150 updates" in told
    assert f"{tmp_path / 'mine'}/report.html" in told
    plan = json.loads((tmp_path / "mine" / "run.json").read_text())
    assert (plan["num_envs"], plan["seed"], plan["device"]) == (4, 0, "cpu")


def test_training_quietly(tmp_path, config):
    status, told = shoal("train", config(POLE), "--output", tmp_path, "--quiet", "--device", "cpu")
    assert status == 0
    assert len(told.strip().splitlines()) == 1


def test_training_from_an_agent(tmp_path, config, runs):
    options = ["--output", tmp_path, "--device", "cpu", "--quiet"]
    status, _ = shoal("train", config(POLE), "--start-from", runs["pole"], *options)
    assert status == 0


def test_resuming(tmp_path, config):
    shoal("train", config(POLE), "--output", tmp_path, "--name", "mine", "--quiet",
          "--device", "cpu")  # fmt: skip
    status, told = shoal(
        "resume", tmp_path / "mine", "--checkpoint", "step-000000000100.checkpoint"
    )
    assert status == 0
    assert "200 steps" in told
    status, told = shoal("resume", tmp_path / "mine", "--quiet", "--device", "cpu")
    assert status == 0


def test_what_is_in_use_is_said_in_a_line(tmp_path, config, monkeypatch):
    shoal("train", config(POLE), "--output", tmp_path, "--name", "mine", "--device", "cpu")
    monkeypatch.setattr("shoal.train._runs.folder._PATIENCE", 0.0)
    with RunFolder(tmp_path / "mine").held():
        assert "is in use" in mistake("resume", tmp_path / "mine")


def test_agents_that_diverge_are_told_of_in_a_line(tmp_path, config):
    settings = SMALL | {"learning_rate": 1e30}
    wild = POLE | {"agent": {"type": "DDDQN", "hyperparameters": settings}}
    told = mistake("train", config(wild), "--output", tmp_path, "--quiet", "--device", "cpu")
    assert "the agent has diverged" in told


def test_evaluating_in_hockey(runs):
    status, told = shoal("eval", runs["game"], "--games", 6)
    assert status == 0
    rows = [line for line in told.splitlines() if re.search(r"weak|strong", line)]
    assert len(rows) == 2
    for row in rows:
        _, games, won, _, drawn, lost, *_ = (cell.strip() for cell in row.strip("│").split("│"))
        assert games == "6"
        wins = round(float(won.rstrip("%")) * 6 / 100)
        assert wins + int(drawn) + int(lost) == 6


def test_evaluating_against_agents(runs):
    other = runs["other"] / "final.agent"
    status, told = shoal("eval", runs["game"] / "final.agent", "--opponent", other,
                         "--opponent", "weak", "--games", 3)  # fmt: skip
    assert status == 0
    assert "final.agent" in told


def test_evaluating_alone(runs):
    for agent in (runs["pole"], runs["pole"] / "best.agent"):
        status, told = shoal("eval", agent, "--games", 7)
        assert status == 0
        assert re.search(r"│\s*7\s*│", told)


def test_the_same_seed_is_the_same_evaluation(runs):
    first, again, other = (
        shoal("eval", runs["game"], "--games", 9, "--seed", s) for s in (1, 1, 2)
    )
    assert first == again
    assert first != other


def test_a_checkpoint_of_a_run_is_evaluated_where_that_was_trained(runs):
    checkpoint = next((runs["pole"] / "checkpoints").glob("*.checkpoint"))
    status, told = shoal("eval", checkpoint, "--games", 3)
    assert status == 0, told


def test_a_tournament(runs):
    status, told = shoal("tournament", runs["game"], runs["other"] / "final.agent", "weak",
                         "strong", "--games", 4)  # fmt: skip
    assert status == 0
    for name in ("weak", "strong"):
        assert name in told


def test_watching(tmp_path, runs):
    status, told = shoal("watch", runs["game"], "--episodes", 1, "--output", tmp_path / "it.mp4")
    assert status == 0
    assert told.strip() == str(tmp_path / "it.mp4")
    assert (tmp_path / "it.mp4").stat().st_size > 1000
    told, _ = told_as_json("watch", runs["pole"] / "final.agent", "--episodes", 1)
    assert told == {"video": str(runs["pole"] / "final.mp4")}
    assert (runs["pole"] / "final.mp4").exists()


# What programs read


def told_as_json(*arguments):
    """The result, which stands alone on standard output."""
    result = CliRunner().invoke(app, [*map(str, arguments), "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout, parse_constant=pytest.fail), result.stderr


def test_results_of_training_are_told_to_programs_and_progress_beside_them(tmp_path, config):
    told, beside = told_as_json(
        "train", config(POLE), "--device", "cpu", "--output", tmp_path, "--name", "mine"
    )
    assert (told["total_steps"], told["run_folder"]) == (200, str(tmp_path / "mine"))
    assert "[mine]" in beside
    again, _ = told_as_json("resume", tmp_path / "mine", "--quiet")
    assert again["total_steps"] == 200


def test_a_run_without_an_episode_has_no_mean(tmp_path, config):
    short = POLE | {"curriculum": {"phases": [{"name": "only", "steps": 2}]}}
    told, _ = told_as_json("train", config(short), "--device", "cpu", "--output", tmp_path)
    assert (told["mean_reward"], told["final_reward"]) == (None, None)


def test_evaluations_and_tournaments_are_told_to_programs(runs):
    told, _ = told_as_json("eval", runs["pole"], "--games", 3)
    (record,) = told["evaluations"]
    assert (record["games"], record["win_rate"]) == (3, None)
    told, _ = told_as_json("tournament", "weak", "strong", "--games", 4)
    assert [player["place"] for player in told["players"]] == [1, 2]
    assert sum(pair["wins"] + pair["draws"] + pair["losses"] for pair in told["pairings"]) == 4


# What users get wrong


def mistake(*arguments):
    """One line, and no more, that says what is wrong."""
    status, told = shoal(*arguments)
    assert status == 1, told
    assert len(told.strip().splitlines()) == 1, told
    return told


def test_unknown_keys_of_configs_are_told_with_a_suggestion(tmp_path, config):
    train = ["--output", tmp_path / "runs", "--device", "cpu"]
    told = mistake("train", config(POLE | {"curiculum": {}}), *train)
    assert "config.json: curiculum is unknown; did you mean curriculum?" in told
    wrong = POLE | {"training": {"warmup_step": 3}}
    assert "training.warmup_step is unknown; did you mean training.warmup_steps?" in mistake(
        "train", config(wrong), *train
    )
    wrong = POLE | {"agent": {"type": "DDDQN", "hyperparameters": {"hiden_dim": [3]}}}
    assert "hiden_dim is unknown; did you mean agent.hyperparameters.hidden_dim?" in mistake(
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
def test_configs_that_cannot_be(tmp_path, config, change, expected):
    told = mistake("train", config(POLE | change), "--output", tmp_path / "runs", "--device", "cpu")
    assert expected in told


def test_files_that_are_not_there(tmp_path, config, runs):
    assert "there is no config" in mistake("train", tmp_path / "nothing.json")
    assert "has no run.json" in mistake("resume", tmp_path)
    assert "there is no run" in mistake("resume", tmp_path / "nothing")
    assert "there is no agent" in mistake("eval", tmp_path / "nothing.agent")
    assert "has no agent yet, and no checkpoint" in mistake("eval", tmp_path)
    assert "there is no agent" in mistake("eval", runs["game"], "--opponent", "medium")
    assert "there is no agent" in mistake("tournament", "weak", "medium")
    assert "there is no agent" in mistake("watch", tmp_path / "nothing.agent")
    assert "there is no agent" in mistake("watch", runs["game"], "--opponent", "medium")
    told = mistake("resume", runs["pole"], "--checkpoint", "step-7.checkpoint")
    assert "there is no checkpoint" in told
    assert "step-000000000200.checkpoint" in told
    told = mistake("train", config(POLE), "--start-from", tmp_path / "nothing")
    assert "there is no agent" in told


def test_files_that_are_something_else(tmp_path, config):
    (tmp_path / "broken.json").write_text('{"curriculum": ')
    assert "is not JSON" in mistake("train", tmp_path / "broken.json")
    (tmp_path / "list.json").write_text("[1, 2]")
    assert "list.json" in mistake("train", tmp_path / "list.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    assert "is not JSON" in mistake("train", tmp_path / "bytes.json")
    assert "is no checkpoint or agent" in mistake("eval", config(POLE))
    (tmp_path / "empty.agent").write_bytes(b"")
    assert "is no checkpoint or agent" in mistake("eval", tmp_path / "empty.agent")


def test_a_run_of_that_name(tmp_path, config):
    arguments = ["train", config(POLE), "--output", tmp_path, "--name", "mine", "--quiet",
                 "--device", "cpu"]  # fmt: skip
    assert shoal(*arguments)[0] == 0
    assert "there is a run mine" in mistake(*arguments)


def test_a_folder_that_cannot_be_written_to(tmp_path, config):
    (tmp_path / "file").write_text("")
    told = mistake("train", config(POLE), "--output", tmp_path / "file", "--device", "cpu")
    assert str(tmp_path / "file") in told


def test_tournaments_that_cannot_be(runs):
    assert "two players or more" in mistake("tournament", "weak")
    assert "each once" in mistake("tournament", "weak", "weak")
    mistake("tournament", "weak", "strong", "--games", 3)


def test_agents_of_other_environments(runs):
    """Who has learnt to hold a pole does not play hockey."""
    mistake("eval", runs["pole"] / "final.agent", "--env", "shoal/Hockey-v0", "--games", 2)
    mistake("eval", runs["game"], "--opponent", runs["pole"], "--games", 2)
    mistake("tournament", runs["pole"], "weak", "--games", 2)
    mistake("watch", runs["pole"], "--env", "shoal/Hockey-v0", "--episodes", 1)
    mistake("watch", runs["game"], "--opponent", runs["pole"], "--episodes", 1)
    mistake("eval", runs["pole"], "--env", "CartPol-v1", "--games", 2)
    mistake("eval", runs["pole"], "--env", "Acrobot-v1", "--games", 2)


def test_devices_that_there_are_not(tmp_path, config, runs):
    mistake("train", config(POLE), "--device", "graphics", "--output", tmp_path / "runs")
    mistake("eval", runs["game"], "--device", "graphics", "--games", 2)


def test_a_gpu_that_is_not_there(tmp_path, config, runs, monkeypatch):
    """What was said for another machine is done on this one, with a warning; not a traceback."""
    import torch

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    options = ["--output", tmp_path / "runs", "--quiet"]
    with pytest.warns(UserWarning, match="no GPU"):
        assert shoal("train", config(POLE), "--device", "cuda", *options)[0] == 0
    with pytest.warns(UserWarning, match="no GPU"):
        assert shoal("eval", runs["game"], "--device", "cuda", "--games", 2)[0] == 0


def test_help_of_every_command():
    for command in ("train", "eval", "resume", "tournament", "watch"):
        status, told = shoal(command, "--help")
        assert status == 0
        assert command in told
