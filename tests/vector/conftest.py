"""What all tests of vectors have in common."""

import sys

import pytest

from shoal._plan import StepCost


@pytest.fixture(autouse=True)
def steps_seem_short(monkeypatch):
    """Vectors are made of Python environments, inline, unless a test says otherwise.

    What is chosen, and by which measurements, is the matter of ``tests/test_plan.py``; kernels are
    that of ``tests/kernels``.
    """
    measured = StepCost(1e-6, 1e-6, 0.0, 100)
    monkeypatch.setattr(sys.modules["shoal._pool_factory"], "measure", lambda *_: measured)
    monkeypatch.setattr(sys.modules["shoal._make"], "has_builtin_kernel", lambda *_: False)
