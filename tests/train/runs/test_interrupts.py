"""Ctrl-C: the first one saves and says how to resume, a second one is not swallowed."""

import os
import signal
import threading

import msgspec
import pytest

from shoal.train import resume_run
from shoal.train._runs.interrupts import Interrupts
from shoal.train._runs.run import Run
from tests.train.runs.children import SLOWLY, newest, python, wait_for
from tests.train.runs.making import (
    checkpoints,
    differences,
    episodes,
    last_state,
    made_config,
    trained,
)

MAIN = "from shoal._cli import main; main()"


def test_the_step_is_finished_and_everything_saved(tmp_path, interrupted_at):
    config = made_config(steps=600)
    trained(config, tmp_path, "whole")
    interrupted_at(300)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        trained(config, tmp_path)
    assert signal.getsignal(signal.SIGINT) is before
    folder = tmp_path / "run"
    assert [path.name for path in checkpoints(folder)] == ["step-000000000300.checkpoint"]
    resume_run(folder, verbose=False)
    assert not differences(last_state(tmp_path / "whole"), last_state(folder))
    assert episodes(folder) == episodes(tmp_path / "whole")


def test_in_another_thread_a_run_goes_on_undisturbed(tmp_path):
    results = []
    thread = threading.Thread(
        target=lambda: results.append(trained(made_config(steps=200), tmp_path))
    )
    thread.start()
    thread.join()
    assert results[0]["total_steps"] == 200


def test_a_second_interrupt_is_not_waited_for():
    with Interrupts() as interrupts:
        assert not interrupts.requested
        signal.raise_signal(signal.SIGINT)
        assert interrupts.requested
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_a_signal_that_is_ignored_stays_ignored(tmp_path):
    """As it is for what a shell runs in the background."""
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


def test_the_command_line_saves_says_how_to_resume_and_resumes(tmp_path):
    config = made_config(steps=1200, checkpoint_save_freq=100)
    file = tmp_path / "config.json"
    file.write_bytes(msgspec.json.encode(config))
    arguments = ["--num-envs", 2, "--seed", 3, "--device", "cpu"]
    process = shoal_command("train", file, *arguments, "--output", tmp_path, "--name", "run",
                            before=SLOWLY)  # fmt: skip
    folder = tmp_path / "run"
    assert wait_for(lambda: newest(folder) > "", process)
    before = newest(folder)
    process.send_signal(signal.SIGINT)
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 130, told
    assert f"shoal resume {folder}" in told
    assert "Traceback" not in told
    assert newest(folder) >= before
    process = shoal_command("resume", folder, "--quiet")
    told, _ = process.communicate(timeout=60)
    assert process.returncode == 0, told
    assert "1,200 steps" in told
    trained(config, tmp_path, "whole")
    assert not differences(last_state(tmp_path / "whole"), last_state(folder))


def test_a_second_interrupt_ends_what_takes_long(tmp_path):
    """Saving does not come to its end here, and leaves nothing half done."""
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
    told, _ = process.communicate(timeout=20)
    assert process.returncode == -signal.SIGINT, told
    assert told.strip().endswith("KeyboardInterrupt")
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_an_interrupt_while_the_run_ends_does_not_lose_its_last_steps(tmp_path, monkeypatch):
    """The last evaluation may take long: who is interrupted there was told that all was saved."""
    evaluate = Run._evaluate

    def signalled(run):
        if run.steps == 600:
            signal.raise_signal(signal.SIGINT)
        evaluate(run)

    config = made_config(steps=600)
    monkeypatch.setattr(Run, "_evaluate", signalled)
    with pytest.raises(KeyboardInterrupt):
        trained(config, tmp_path)
    assert [path.name for path in checkpoints(tmp_path / "run")] == ["step-000000000600.checkpoint"]


def test_what_was_not_saved_is_not_said_to_be(tmp_path, monkeypatch, capsys):
    """A second interrupt ends saving."""

    def interrupted(run):
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        trained(made_config(steps=100, checkpoint_save_freq=50), tmp_path, verbose=True)
    assert "saved; go on with" not in capsys.readouterr().out
