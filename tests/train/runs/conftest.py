"""Runs that are told of in logs, but are not drawn: plots take longer than these runs."""

import pytest

from shoal.train.reporting import reporter
from tests.train.runs.recording import Recorder


@pytest.fixture(autouse=True)
def without_plots(monkeypatch):
    monkeypatch.setattr(reporter, "write_plots", lambda *_: None)
    monkeypatch.setattr(reporter, "open_board", lambda *_: None)


@pytest.fixture
def recorder(monkeypatch):
    """What the runs of a test do."""
    return Recorder(monkeypatch)
