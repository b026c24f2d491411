"""Fixtures of all tests of vectors."""

import sys

import pytest

from shoal._plan import StepCost


@pytest.fixture(autouse=True)
def default_to_inline_python_environments(monkeypatch):
    """Make ``shoal.make`` use inline Python environments unless a test chooses a backend.

    ``tests/test_plan.py`` tests the choice of the backend, ``tests/kernels`` tests kernels.
    """
    cost = StepCost(1e-6, 1e-6, 0.0, 100)
    monkeypatch.setattr(sys.modules["shoal._pool_factory"], "measure", lambda *_: cost)
    monkeypatch.setattr(sys.modules["shoal._make"], "has_builtin_kernel", lambda *_: False)
