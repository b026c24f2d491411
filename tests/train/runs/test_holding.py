"""The lock of a run's folder."""

import signal
import threading

import pytest

from shoal.errors import RunInUseError
from shoal.train import load_agent, resume_run
from shoal.train._runs import folder as folders
from shoal.train._runs.run import Run
from tests.train.runs.child_processes import SLOW_STEPS, kill, newest, resuming, training, wait_for
from tests.train.runs.small_runs import checkpoints, make_config, train_run


@pytest.fixture(autouse=True)
def short_lock_timeout(monkeypatch):
    monkeypatch.setattr(folders, "_PATIENCE", 0.1)


def test_run_in_progress_cannot_be_resumed(tmp_path):
    config = make_config(steps=100_000, checkpoint_save_freq=50)
    process = training(config, tmp_path, num_envs=2, before=SLOW_STEPS)
    folder = tmp_path / "run"
    try:
        assert wait_for(lambda: newest(folder) > "", process)
        with pytest.raises(RunInUseError, match="run is in use: another process"):
            resume_run(folder, verbose=False)
        load_agent(folder)  # reading is possible
        other = resuming(folder)
        output, _ = other.communicate(timeout=60)
        assert other.returncode == 1
        assert "RunInUseError" in output
        before = newest(folder)
        assert wait_for(lambda: newest(folder) > before, process)
    finally:
        kill(process)
    process = resuming(folder)  # the lock ends with its process
    assert wait_for(lambda: newest(folder) > before, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    files = {path.name for path in folder.iterdir()}
    assert files <= {"run.json", "checkpoints", "logs", "report.html", "plots", "best.agent"}


def test_run_in_progress_cannot_be_resumed_in_the_same_process(tmp_path, monkeypatch):
    step, refused = Run._step, threading.Event()

    def resuming_step(run):
        if not refused.is_set():
            with pytest.raises(RunInUseError):
                resume_run(run.folder.path, verbose=False)
            refused.set()
        step(run)

    monkeypatch.setattr(Run, "_step", resuming_step)
    train_run(make_config(steps=60), tmp_path)
    assert refused.is_set()
    assert resume_run(tmp_path / "run", verbose=False)["total_steps"] == 60


@pytest.mark.parametrize("fails", [True, False])
def test_lock_is_released_when_the_run_ends(tmp_path, monkeypatch, fails):
    if fails:
        with monkeypatch.context() as patched:
            patched.setattr(Run, "_step", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                train_run(make_config(steps=60), tmp_path)
    else:
        train_run(make_config(steps=60), tmp_path)
    resume_run(tmp_path / "run", verbose=False)
    assert len(checkpoints(tmp_path / "run")) == 1


def test_workers_of_a_killed_run_release_the_lock(tmp_path, monkeypatch):
    """Forked workers inherit the descriptor that holds the lock."""
    monkeypatch.setattr(folders, "_PATIENCE", 5.0)
    options = {"backend": "process", "start": "fork", "workers": 2}
    config = make_config(steps=100_000, arguments=options, checkpoint_save_freq=50)
    process = training(config, tmp_path, num_envs=2, before=SLOW_STEPS)
    assert wait_for(lambda: newest(tmp_path / "run") > "", process)
    before = newest(tmp_path / "run")
    kill(process)
    process = resuming(tmp_path / "run")
    assert wait_for(lambda: newest(tmp_path / "run") > before, process)
    kill(process)


@pytest.mark.parametrize("name", ["", ".", "..", "../run", "a/../../b", "/tmp/run", " "])
def test_invalid_run_name(tmp_path, name):
    with pytest.raises(ValueError, match="run_name must be the name of a folder in"):
        train_run(make_config(steps=60), tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_run_name_with_subfolder(tmp_path):
    result = train_run(make_config(steps=60), tmp_path, "today/first")
    assert result["run_folder"] == str(tmp_path / "today" / "first")
