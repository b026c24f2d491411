"""Runs that are told of in logs, but are not drawn: plots take longer than these runs."""

import signal
import threading

import pytest

from shoal.train._reporting import reporter
from shoal.train._runs.run import Run
from tests.train.runs.children import STARTED
from tests.train.runs.recording import Recorder


@pytest.fixture(autouse=True)
def children_end_with_the_test():
    yield
    while STARTED:
        with STARTED.pop() as process:  # closes its pipes and waits for it
            process.kill()


@pytest.fixture(autouse=True)
def without_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


@pytest.fixture
def recorder(monkeypatch):
    """What the runs of a test do."""
    return Recorder(monkeypatch)


@pytest.fixture
def interrupted_at(monkeypatch):
    """Lets a signal come after the housekeeping of a step."""

    def at(step):
        housekeeping = Run._housekeeping
        steps = {step}  # once: a run that goes on from there is not to be interrupted

        def signalled(run):
            housekeeping(run)
            if run.steps in steps and threading.current_thread() is threading.main_thread():
                steps.clear()
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Run, "_housekeeping", signalled)

    return at
