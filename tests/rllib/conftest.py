"""What all tests of this folder need."""

from importlib.util import find_spec

import pytest

# Ray alone has RLlib's modules, but not what they need.
collect_ignore = [] if find_spec("ray") and find_spec("tree") else ["collecting.py"]


@pytest.fixture(scope="session", autouse=True)
def cluster(ray_here):
    """A Ray with two CPUs: env runners in other processes take one each."""
    pytest.importorskip("torch")
