"""Nobody trains in a folder where somebody else does."""

import signal
import threading

import pytest

from shoal.errors import RunInUseError
from shoal.train import load_agent, resume_run
from shoal.train._runs import folder as folders
from shoal.train._runs.run import Run
from tests.train.runs.children import SLOWLY, killed, newest, resuming, training, wait_for
from tests.train.runs.making import checkpoints, made_config, trained


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(folders, "_PATIENCE", 0.1)


def test_a_run_that_goes_on_is_not_resumed(tmp_path):
    config = made_config(steps=100_000, checkpoint_save_freq=50)
    process = training(config, tmp_path, num_envs=2, before=SLOWLY)
    folder = tmp_path / "run"
    try:
        assert wait_for(lambda: newest(folder) > "", process)
        with pytest.raises(RunInUseError, match="run is in use: another process"):
            resume_run(folder, verbose=False)
        load_agent(folder)  # looking on is no harm
        other = resuming(folder)
        told, _ = other.communicate(timeout=60)
        assert other.returncode == 1
        assert "RunInUseError" in told
        before = newest(folder)
        assert wait_for(lambda: newest(folder) > before, process)
    finally:
        killed(process)
    process = resuming(folder)  # which is free at once
    assert wait_for(lambda: newest(folder) > before, process)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    left = {path.name for path in folder.iterdir()}
    assert left <= {"run.json", "checkpoints", "logs", "report.html", "plots", "best.agent"}


def test_nor_in_the_same_process(tmp_path, monkeypatch):
    step, goes_on, errors = Run._step, threading.Event(), []

    def tried(run):
        if not errors:
            try:
                resume_run(run.folder.path, verbose=False)
            except RunInUseError as error:
                errors.append(error)
                goes_on.set()
        step(run)

    monkeypatch.setattr(Run, "_step", tried)
    trained(made_config(steps=60), tmp_path)
    assert goes_on.is_set()
    assert resume_run(tmp_path / "run", verbose=False)["total_steps"] == 60


@pytest.mark.parametrize("fails", [True, False])
def test_a_folder_is_free_when_its_run_has_ended(tmp_path, monkeypatch, fails):
    if fails:
        with monkeypatch.context() as patched:
            patched.setattr(Run, "_step", lambda _: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                trained(made_config(steps=60), tmp_path)
    else:
        trained(made_config(steps=60), tmp_path)
    resume_run(tmp_path / "run", verbose=False)
    assert len(checkpoints(tmp_path / "run")) == 1


def test_workers_of_a_killed_run_do_not_hold_it(tmp_path, monkeypatch):
    """Processes that were forked have all that was open."""
    monkeypatch.setattr(folders, "_PATIENCE", 5.0)
    options = {"backend": "process", "start": "fork", "workers": 2}
    config = made_config(steps=100_000, arguments=options, checkpoint_save_freq=50)
    process = training(config, tmp_path, num_envs=2, before=SLOWLY)
    assert wait_for(lambda: newest(tmp_path / "run") > "", process)
    before = newest(tmp_path / "run")
    killed(process)
    process = resuming(tmp_path / "run")
    assert wait_for(lambda: newest(tmp_path / "run") > before, process)
    killed(process)


@pytest.mark.parametrize("name", ["", ".", "..", "../run", "a/../../b", "/tmp/run", " "])
def test_a_run_is_a_folder_among_others(tmp_path, name):
    with pytest.raises(ValueError, match="run_name must name a folder in"):
        trained(made_config(steps=60), tmp_path, name)
    assert not list(tmp_path.iterdir())


def test_a_folder_in_a_folder(tmp_path):
    result = trained(made_config(steps=60), tmp_path, "today/first")
    assert result["run_folder"] == str(tmp_path / "today" / "first")
