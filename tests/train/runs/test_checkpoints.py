"""Checkpoints: atomic writes, detection of damage, number of kept files, and the best agent."""

import pickle
import shutil
from pathlib import Path

import pytest

from shoal.errors import CheckpointError
from shoal.train import load_agent, resume_run
from shoal.train._evaluation import play_episodes
from shoal.train._files import read_file, write_file
from shoal.train._runs import evaluator as evaluator_module
from shoal.train._runs.checkpoints import Checkpoints
from tests.train.runs.child_processes import python, training
from tests.train.runs.small_runs import (
    HOCKEY,
    checkpoints,
    differences,
    last_state,
    make_config,
    network,
    train_run,
)


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory):
    folder = tmp_path_factory.mktemp("undamaged")
    train_run(make_config(steps=600, checkpoint_save_freq=200), folder)
    assert len(checkpoints(folder / "run")) == 3
    return folder / "run"


@pytest.fixture
def run(tmp_path, undamaged):
    """The folder of a run with checkpoints at 200, 400 and 600 steps."""
    return Path(shutil.copytree(undamaged, tmp_path / "run"))


def flipped(path, place):
    content = bytearray(path.read_bytes())
    content[place] ^= 4
    path.write_bytes(content)


DAMAGES = {
    "middle bit": lambda path: flipped(path, path.stat().st_size // 2),
    "last bit": lambda path: flipped(path, -1),
    "digest": lambda path: flipped(path, 20),
    "magic": lambda path: flipped(path, 0),
    "half": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "header only": lambda path: path.write_bytes(path.read_bytes()[:40]),
    "a few bytes": lambda path: path.write_bytes(path.read_bytes()[:7]),
    "empty": lambda path: path.write_bytes(b""),
    "trailing byte": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "foreign file": lambda path: path.write_text("not a checkpoint at all, " * 10),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_checkpoint_error_names_an_intact_one(run, damage):
    expected = last_state(run)
    _, second, newest = checkpoints(run)
    DAMAGES[damage](newest)
    with pytest.raises(CheckpointError) as raised:
        resume_run(run, verbose=False)
    assert newest.name in str(raised.value)
    assert f"resume with checkpoint={second.name!r}" in str(raised.value)
    with pytest.raises(CheckpointError, match=newest.name):
        resume_run(run, newest.name, verbose=False)
    resume_run(run, second.name, verbose=False)
    assert not differences(expected, last_state(run))


def test_error_names_the_newest_intact_checkpoint(run):
    first, second, newest = checkpoints(run)
    for path in (second, newest):
        flipped(path, 500)
    with pytest.raises(CheckpointError, match=f"checkpoint='{first.name}'"):
        resume_run(run, verbose=False)
    flipped(first, 500)
    with pytest.raises(CheckpointError, match="is damaged") as raised:
        resume_run(run, verbose=False)
    assert "intact" not in str(raised.value)


def test_damaged_agent_raises(run):
    for damage in ("middle bit", "half", "empty"):
        content = (run / "best.agent").read_bytes()
        DAMAGES[damage](run / "best.agent")
        with pytest.raises(CheckpointError, match=r"best\.agent"):
            load_agent(run)
        (run / "best.agent").write_bytes(content)


def test_reading_executes_no_code(tmp_path):
    executed = tmp_path / "executed"

    class Evil:
        def __reduce__(self):
            return (open, (str(executed), "w"))

    file = tmp_path / "evil.agent"
    write_file(file, {"file": "agent", "kind": Evil()})
    with pytest.raises((CheckpointError, pickle.UnpicklingError)):
        read_file(file)
    assert not executed.exists()


@pytest.mark.parametrize("kept", [1, 2, 5])
def test_newest_checkpoints_are_kept(tmp_path, kept):
    train_run(make_config(steps=400, checkpoint_save_freq=100, checkpoints_kept=kept), tmp_path)
    names = [path.name for path in checkpoints(tmp_path / "run")]
    assert names == [f"step-{step:012}.checkpoint" for step in (100, 200, 300, 400)][-kept:]


def test_other_files_are_not_removed(tmp_path):
    folder = tmp_path / "run" / "checkpoints"
    folder.mkdir(parents=True)
    other = folder / "mine.checkpoint"
    other.write_text("content")
    train_run(make_config(steps=400, checkpoint_save_freq=50, checkpoints_kept=1), tmp_path)
    assert other.read_text() == "content"


def test_checkpoints_are_ordered_by_step(tmp_path):
    kept_checkpoints = Checkpoints(tmp_path, 2)
    for step in (999, 20_000, 1_000_000_000):
        kept_checkpoints.save(step, {"step": step})
    assert [path.name for path in kept_checkpoints.files()] == [
        "step-000000020000.checkpoint",
        "step-001000000000.checkpoint",
    ]
    assert kept_checkpoints.newest("cpu") == {"step": 1_000_000_000}


def test_best_agent_is_that_of_the_best_evaluation(tmp_path, monkeypatch):
    scores = iter([10.0, 30.0, 20.0, 5.0])
    evaluate = evaluator_module.evaluate_single_agent

    def rated(*args):
        return evaluate(*args)._replace(mean_reward=next(scores))

    monkeypatch.setattr(evaluator_module, "evaluate_single_agent", rated)
    config = make_config(steps=400, checkpoint_save_freq=100, checkpoints_kept=9)
    train_run(config, tmp_path, eval_freq_steps=100)
    folder = tmp_path / "run"
    networks = [network(path) for path in checkpoints(folder)]
    best = network(folder / "best.agent")
    assert [not differences(best, other) for other in networks] == [False, True, False, False]
    assert not differences(network(folder / "final.agent"), networks[3])


def test_resumed_run_keeps_the_best_score(tmp_path, monkeypatch):
    scores = {100: 10.0, 200: 30.0, 300: 20.0, 400: 5.0}
    evaluate = evaluator_module.evaluate_single_agent

    def rated(agent, step, *args):
        return evaluate(agent, step, *args)._replace(mean_reward=scores[step])

    monkeypatch.setattr(evaluator_module, "evaluate_single_agent", rated)
    config = make_config(steps=400, checkpoint_save_freq=100, checkpoints_kept=9)
    train_run(config, tmp_path, eval_freq_steps=100)
    best = network(tmp_path / "run" / "best.agent")
    resume_run(tmp_path / "run", "step-000000000200.checkpoint", verbose=False)
    assert not differences(best, network(tmp_path / "run" / "best.agent"))


def test_agent_can_be_loaded_from_a_checkpoint(run):
    agent = load_agent(checkpoints(run)[-1])
    returns, _ = play_episodes(agent, "CartPole-v1", 5)
    assert len(returns) == 5
    assert not differences(
        network(checkpoints(run)[-1]),
        {name: value.numpy() for name, value in agent.network.state_dict().items()},
    )


@pytest.mark.parametrize("limit", ["1_000", "100_000"])
def test_full_disk_keeps_older_checkpoints(tmp_path, limit):
    """The limit on the size of files is set after 250 steps."""
    full = f"""
import resource
from shoal.train._runs.run import Run
save = Run.save
def full(run):
    if run.steps > 250:
        resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))
    save(run)
Run.save = full
"""
    config = make_config("SAC", HOCKEY, steps=600, checkpoint_save_freq=250, max_episode_steps=50,
                         settings={"hidden_dim": [128, 128]}, updates_per_step=0.1)  # fmt: skip
    process = training(config, tmp_path, num_envs=2, before=full)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 1, output
    last = output.strip().splitlines()[-1]
    assert last.startswith("shoal.errors.CheckpointError")
    assert "step-000000000500.checkpoint could not be written" in last
    assert "File too large" in last
    folder = tmp_path / "run"
    assert [path.name for path in checkpoints(folder)] == ["step-000000000250.checkpoint"]
    assert [path.name for path in (folder / "checkpoints").iterdir()] == [
        "step-000000000250.checkpoint"
    ]
    assert read_file(checkpoints(folder)[0])["steps"] == 250
    result = resume_run(folder, verbose=False)
    assert result["total_steps"] == 600


def test_full_disk_keeps_the_old_agent(tmp_path):
    process = python(
        """
import resource, sys
import numpy as np
from gymnasium import spaces
from shoal.errors import CheckpointError
from shoal.train import AgentSpaces, load_agent, make_agent
agent = make_agent("DDDQN", AgentSpaces(4, spaces.Discrete(2)), {"buffer_size": 10})
agent.save(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    agent.save(sys.argv[1])
except CheckpointError as error:
    print(error)
load_agent(sys.argv[1])
print("loaded")
""",
        tmp_path / "mine.agent",
    )
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "could not be written" in output.splitlines()[-2]
    assert output.splitlines()[-1] == "loaded"
    assert [path.name for path in tmp_path.iterdir()] == ["mine.agent"]


def test_folder_is_not_writable(tmp_path):
    (tmp_path / "checkpoints").write_text("not a folder")
    with pytest.raises(CheckpointError, match="could not be written"):
        Checkpoints(tmp_path / "checkpoints", 2).save(1, {})
