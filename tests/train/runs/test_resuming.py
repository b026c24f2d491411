"""A run that is killed and resumed gives the same result as an uninterrupted run, bit for bit."""

import random
import time

import pytest
import torch
from msgspec import structs

from shoal.errors import CheckpointError
from shoal.train import resume_run
from tests.train.runs.child_processes import kill, newest, resuming, training, wait_for
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

HOCKEY_RULES = {
    "environment": {"mixture": [{"mode": "TRAIN_SHOOTING"}, {"mode": "NORMAL"}]},
    "opponent": {
        "type": "weighted_mixture",
        "opponents": [
            {"type": "basic_weak"},
            {"type": "self_play", "deterministic": False},
            {"type": "none"},
        ],
    },
    "reward_shaping": {
        "N": 5,
        "K": 20,
        "CLOSENESS_START": 2.0,
        "TOUCH_START": 1.0,
        "CLOSENESS_FINAL": 1.0,
        "TOUCH_FINAL": 0.0,
        "DIRECTION_FINAL": 1.0,
    },
}
LEAGUE = {
    "snapshot_every": 8,
    "size": 12,
    "exploiter_share": 0.34,
    "exploiter_window": 4,
    "exploiter_max_episodes": 4,
}
FREQUENCIES = {"checkpoint_save_freq": 200, "eval_freq_steps": 450, "updates_per_step": 0.4}
PRIORITIZED = {"prioritized": True, "n_step": 3, "target_update_freq": 7, "buffer_size": 500}


def phases(steps, **rules):
    first = {"name": "first", "steps": steps // 2} | rules
    second = {"name": "second", "steps": steps - steps // 2, "clear_buffer": True} | rules
    return [first, second]


CONFIGS = {
    "DDDQN": make_config("DDDQN", phases=phases(1600), settings=PRIORITIZED, **FREQUENCIES),
    "DDDQN hockey": make_config(
        "DDDQN",
        HOCKEY,
        phases(1200, **HOCKEY_RULES),
        settings=PRIORITIZED,
        max_episode_steps=60,
        **FREQUENCIES,
    ),
    "SAC": make_config(
        "SAC",
        HOCKEY,
        phases(1200, **HOCKEY_RULES),
        settings={"noise": "pink", "noise_period": 16, "n_step": 2},
        max_episode_steps=60,
        **FREQUENCIES,
    ),
    "PPO": make_config(
        "PPO",
        HOCKEY,
        phases(2400, **HOCKEY_RULES),
        settings={"normalize_observations": True, "anneal": True, "rollout_steps": 25},
        max_episode_steps=60,
        **FREQUENCIES,
    ),
    "league": make_config(
        "SAC",
        HOCKEY,
        phases(1200, opponent={"type": "league", "deterministic": False}),
        settings={"noise": "pink"},
        league=LEAGUE,
        max_episode_steps=60,
        **FREQUENCIES,
    ),
}
SLOTS = 6


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    """Return a function from the name of a config to the folder of an uninterrupted run."""
    folders = {}

    def run(name):
        if name not in folders:
            folder = tmp_path_factory.mktemp("uninterrupted")
            folders[name] = train_run(CONFIGS[name], folder, num_envs=SLOTS)["run_folder"]
        return folders[name]

    return run


def compare(folder, whole):
    """Compare a resumed run with an uninterrupted one."""
    for file in ("final.agent", "best.agent"):
        assert not differences(network(f"{whole}/{file}"), network(folder / file)), file
    assert not differences(last_state(whole), last_state(folder))
    assert episodes(folder) == episodes(whole)
    for log in ("episodes", "evaluations", "ratings"):
        first, second = (f"{path}/logs/{log}.csv" for path in (whole, folder))
        with open(first) as one, open(second) as other:
            assert one.read() == other.read(), log


def kill_and_resume(name, tmp_path, whole, kills, seed):
    """Kill and resume a run several times at random moments, and compare the result."""
    delays = random.Random(seed)
    folder = tmp_path / "run"
    process = training(CONFIGS[name], tmp_path, num_envs=SLOTS)
    for number in range(kills):
        if number:
            process = resuming(folder)
        before = newest(folder)
        progressed = wait_for(lambda before=before: newest(folder) > before, process)
        if progressed:
            time.sleep(delays.uniform(0.0, 0.15))
        output = kill(process)
        assert "Error" not in output, output
    resume_run(folder, verbose=False)
    compare(folder, whole)


@pytest.mark.parametrize(
    "name",
    ["league", *(pytest.param(name, marks=pytest.mark.slow) for name in ("DDDQN", "SAC", "PPO"))],
)
def test_killed_run_gives_identical_result(tmp_path, uninterrupted, name):
    kill_and_resume(name, tmp_path, uninterrupted(name), kills=1, seed=name)


def test_run_killed_twice(tmp_path, uninterrupted):
    kill_and_resume("DDDQN hockey", tmp_path, uninterrupted("DDDQN hockey"), kills=2, seed=5)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", CONFIGS)
def test_run_killed_at_many_moments(tmp_path, uninterrupted, name, seed):
    kill_and_resume(name, tmp_path, uninterrupted(name), kills=3, seed=seed)


def test_run_killed_before_its_first_checkpoint_starts_again(tmp_path, uninterrupted):
    process = training(
        CONFIGS["DDDQN"],
        tmp_path,
        num_envs=SLOTS,
        before="""
import os, signal
from shoal.train._runs.run import Run
housekeeping = Run._housekeeping
def dies(run):
    housekeeping(run)
    if run.steps >= 190:
        run._reporter.positions()  # flushes the logs
        os.kill(os.getpid(), signal.SIGKILL)
Run._housekeeping = dies
""",
    )
    process.communicate(timeout=60)
    assert process.returncode == -9
    folder = tmp_path / "run"
    assert not checkpoints(folder)
    assert episodes(folder)
    resume_run(folder, verbose=False)
    compare(folder, uninterrupted("DDDQN"))


def test_run_killed_before_its_first_step_starts_again(tmp_path, uninterrupted):
    process = training(CONFIGS["DDDQN"], tmp_path, num_envs=SLOTS)
    folder = tmp_path / "run"
    assert wait_for((folder / "run.json").exists, process)
    kill(process)
    resume_run(folder, verbose=False)
    compare(folder, uninterrupted("DDDQN"))


@pytest.mark.parametrize("name", CONFIGS)
def test_resume_from_older_checkpoints_gives_identical_result(tmp_path, uninterrupted, name):
    config = CONFIGS[name]
    all_kept = structs.replace(config.training, checkpoints_kept=100)
    train_run(structs.replace(config, training=all_kept), tmp_path, num_envs=SLOTS)
    folder = tmp_path / "run"
    expected = network(folder / "final.agent")
    state, rows = last_state(folder), episodes(folder)
    assert not differences(expected, network(f"{uninterrupted(name)}/final.agent"))
    older = checkpoints(folder)[:-1]
    for checkpoint in (older[0], older[len(older) // 2 + 1]):
        resume_run(folder, checkpoint.name, verbose=False)
        assert not differences(expected, network(folder / "final.agent")), checkpoint.name
        assert not differences(state, last_state(folder)), checkpoint.name
        assert episodes(folder) == rows


def test_resuming_a_finished_run_changes_nothing(tmp_path):
    result = train_run(make_config(steps=200), tmp_path)
    expected = last_state(tmp_path / "run")
    again = resume_run(tmp_path / "run", verbose=False)
    assert not differences(expected, last_state(tmp_path / "run"))
    varying = ("seconds", "steps_per_second", "updates_per_second", "evaluation_results")
    for name in result.keys() - set(varying):
        assert result[name] == again[name], name
    assert len(again["evaluation_results"]) == len(result["evaluation_results"])


def test_resume_from_older_checkpoint_discards_newer_ones(tmp_path, interrupted_at):
    """A second resume must not continue from a discarded checkpoint."""
    config = make_config(steps=1000, checkpoint_save_freq=200)
    train_run(config, tmp_path)
    folder = tmp_path / "run"
    interrupted_at(700)
    with pytest.raises(KeyboardInterrupt):
        resume_run(folder, "step-000000000600.checkpoint", verbose=False)
    assert newest(folder) == "step-000000000700.checkpoint"


def test_checkpoints_without_replay_memory(tmp_path):
    large = make_config(steps=1000, checkpoint_save_freq=500, checkpoints_kept=2)
    small = make_config(
        steps=1000, checkpoint_save_freq=500, checkpoints_kept=2, checkpoint_replay=False
    )
    for name, config in (("large", large), ("small", small)):
        train_run(config, tmp_path, name)
    sizes = [checkpoints(tmp_path / name)[-1].stat().st_size for name in ("large", "small")]
    assert sizes[1] < sizes[0] / 2
    first = checkpoints(tmp_path / "small")[0].name
    result = resume_run(tmp_path / "small", first, verbose=False)
    assert (result["total_steps"], result["total_gradient_steps"]) == (1000, 950)


def test_python_environments_start_new_episodes(tmp_path):
    config = make_config(steps=300, checkpoint_save_freq=100, arguments={"backend": "inline"})
    train_run(config, tmp_path)
    first = checkpoints(tmp_path / "run")[0].name
    with pytest.warns(UserWarning, match="start new episodes"):
        result = resume_run(tmp_path / "run", first, verbose=False)
    assert (result["total_steps"], result["total_gradient_steps"]) == (300, 250)


def test_resume_removes_unfinished_files(tmp_path):
    train_run(make_config(steps=300, checkpoint_save_freq=100), tmp_path)
    folder = tmp_path / "run" / "checkpoints"
    unfinished = folder / f".{checkpoints(tmp_path / 'run')[-1].name}.a1b2c3d4.unfinished"
    unfinished.write_bytes(b"half")
    resume_run(tmp_path / "run", checkpoints(tmp_path / "run")[0].name, verbose=False)
    assert not unfinished.exists()


def test_gpu_run_resumes_on_a_machine_without_gpu(tmp_path, monkeypatch):
    train_run(make_config(steps=300, checkpoint_save_freq=100), tmp_path)
    plan = tmp_path / "run" / "run.json"
    plan.write_text(plan.read_text().replace('"cpu"', '"cuda:1"'))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    first = checkpoints(tmp_path / "run")[0].name
    with pytest.warns(UserWarning, match="there is no cuda:1"):
        result = resume_run(tmp_path / "run", first, verbose=False)
    assert result["total_steps"] == 300


def test_resume_of_a_folder_without_run(tmp_path):
    with pytest.raises(CheckpointError, match="is not the folder of a run"):
        resume_run(tmp_path)
    (tmp_path / "run.json").write_text('{"name": "x"}')
    with pytest.raises(CheckpointError, match="cannot be read"):
        resume_run(tmp_path)


def test_missing_checkpoint_error_lists_checkpoints(tmp_path):
    train_run(make_config(steps=100), tmp_path)
    with pytest.raises(
        CheckpointError, match=r"available checkpoints: step-000000000100\.checkpoint"
    ):
        resume_run(tmp_path / "run", "step-000000000050.checkpoint")
