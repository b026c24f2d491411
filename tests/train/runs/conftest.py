"""Fixtures of run tests. Plots are disabled, because they take longer than the runs."""

import signal
import threading

import pytest

from shoal.train._reporting import reporter
from shoal.train._runs.run import Run
from tests.train.runs.child_processes import STARTED
from tests.train.runs.recorder import Recorder


@pytest.fixture(autouse=True)
def children_end_with_the_test():
    yield
    while STARTED:
        with STARTED.pop() as process:  # closes its pipes and waits for it
            process.kill()


@pytest.fixture(autouse=True)
def no_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


@pytest.fixture
def recorder(monkeypatch):
    """Record the runs of a test."""
    return Recorder(monkeypatch)


@pytest.fixture
def interrupted_at(monkeypatch):
    """Return a function that raises SIGINT after the housekeeping of a step."""

    def at(step):
        housekeeping = Run._housekeeping
        steps = {step}  # only once: a resumed run is not interrupted

        def signalled(run):
            housekeeping(run)
            if run.steps in steps and threading.current_thread() is threading.main_thread():
                steps.clear()
                signal.raise_signal(signal.SIGINT)

        monkeypatch.setattr(Run, "_housekeeping", signalled)

    return at
