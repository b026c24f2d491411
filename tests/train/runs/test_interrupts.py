"""Ctrl-C: the first interrupt saves the run, a second one raises KeyboardInterrupt."""

import os
import signal
import threading

import msgspec
import pytest

from shoal.train import resume_run
from shoal.train._runs.interrupts import Interrupts
from shoal.train._runs.run import Run
from tests.train.runs.child_processes import SLOW_STEPS, newest, python, wait_for
from tests.train.runs.small_runs import (
    checkpoints,
    differences,
    episodes,
    last_state,
    make_config,
    train_run,
)

MAIN = "from shoal._cli import main; main()"


def test_first_interrupt_finishes_the_step_and_saves(tmp_path, interrupted_at):
    config = make_config(steps=600)
    train_run(config, tmp_path, "whole")
    interrupted_at(300)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        train_run(config, tmp_path)
    assert signal.getsignal(signal.SIGINT) is before
    folder = tmp_path / "run"
    assert [path.name for path in checkpoints(folder)] == ["step-000000000300.checkpoint"]
    resume_run(folder, verbose=False)
    assert not differences(last_state(tmp_path / "whole"), last_state(folder))
    assert episodes(folder) == episodes(tmp_path / "whole")


def test_run_in_another_thread(tmp_path):
    results = []
    thread = threading.Thread(
        target=lambda: results.append(train_run(make_config(steps=200), tmp_path))
    )
    thread.start()
    thread.join()
    assert results[0]["total_steps"] == 200


def test_second_interrupt_raises():
    with Interrupts() as interrupts:
        assert not interrupts.requested
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_ignored_signal_stays_ignored(tmp_path):
    """Shells ignore SIGINT in background jobs."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts:
            signal.raise_signal(signal.SIGINT)
        assert not interrupts.requested
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)


def shoal_command(*arguments, before=""):
    environment = os.environ | {"COLUMNS": "200"}
    return python(before + MAIN, *arguments, env=environment)


def test_command_line_saves_names_the_resume_command_and_resumes(tmp_path):
    config = make_config(steps=1200, checkpoint_save_freq=100)
    file = tmp_path / "config.json"
    file.write_bytes(msgspec.json.encode(config))
    arguments = ["--num-envs", 2, "--seed", 3, "--device", "cpu"]
    process = shoal_command("train", file, *arguments, "--output", tmp_path, "--name", "run",
                            before=SLOW_STEPS)  # fmt: skip
    folder = tmp_path / "run"
    assert wait_for(lambda: newest(folder) > "", process)
    before = newest(folder)
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert f"shoal resume {folder}" in output
    assert "Traceback" not in output
    assert newest(folder) >= before
    process = shoal_command("resume", folder, "--quiet")
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0, output
    assert "1,200 steps" in output
    train_run(config, tmp_path, "whole")
    assert not differences(last_state(tmp_path / "whole"), last_state(folder))


def test_second_interrupt_aborts_saving(tmp_path):
    """An aborted save leaves no files."""
    process = python(
        """
import os, signal, sys, time
import torch
from shoal.train._reporting import reporter
reporter.write_plots = reporter.open_board = lambda *_: None
from shoal.train import _files, train_single_run
from shoal.train._config import parse_config
from shoal.train._runs.run import Run
save = torch.save
def slow(*args):
    save(*args)
    print("saving", flush=True)
    time.sleep(60)
torch.save = slow
step = Run._step
def stepped(run):
    step(run)
    if run.steps == 100:
        os.kill(os.getpid(), signal.SIGINT)
Run._step = stepped
train_single_run(parse_config({
    "task": {"id": "CartPole-v1"},
    "agent": {"type": "DDDQN", "hyperparameters": {"buffer_size": 100}},
    "curriculum": {"phases": [{"name": "only", "steps": 1000}]},
}), sys.argv[1], "run", verbose=False, device="cpu")
""",
        tmp_path,
    )
    assert process.stdout.readline() == "saving\n"
    process.send_signal(signal.SIGINT)
    output, _ = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT, output
    assert output.strip().endswith("KeyboardInterrupt")
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_interrupt_before_the_last_evaluation_does_not_lose_steps(tmp_path, monkeypatch):
    evaluate = Run._evaluate

    def signalled(run):
        if run.steps == 600:
            signal.raise_signal(signal.SIGINT)
        evaluate(run)

    config = make_config(steps=600)
    monkeypatch.setattr(Run, "_evaluate", signalled)
    with pytest.raises(KeyboardInterrupt):
        train_run(config, tmp_path)
    assert [path.name for path in checkpoints(tmp_path / "run")] == ["step-000000000600.checkpoint"]


def test_failed_save_is_not_reported_as_saved(tmp_path, monkeypatch, capsys):

    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train_run(make_config(steps=100, checkpoint_save_freq=50), tmp_path, verbose=True)
    assert "saved; resume with" not in capsys.readouterr().out
