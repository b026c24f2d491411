"""Fixtures of the RLlib tests."""

from importlib.util import find_spec

import pytest

# Ray without its RLlib extra has RLlib's modules, but not their dependencies.
collect_ignore = [] if find_spec("ray") and find_spec("tree") else ["env_runners.py"]


@pytest.fixture(scope="session", autouse=True)
def cluster(ray_here):
    """A Ray cluster with two CPUs; each remote env runner uses one."""
    pytest.importorskip("torch")
