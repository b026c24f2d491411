"""One small Ray for all tests of this folder."""

from importlib.util import find_spec

import pytest

# Ray alone has RLlib's modules, but not what they need.
collect_ignore = [] if find_spec("ray") and find_spec("tree") else ["collecting.py"]


@pytest.fixture(scope="session", autouse=True)
def cluster():
    """Ray with two CPUs, by name only: env runners in other processes take one each."""
    ray = pytest.importorskip("ray")
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)  # the networks are small, and there are other processes
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            object_store_memory=100 * 2**20,
            log_to_driver=False,
            logging_level="error",
        )
        yield
        ray.shutdown()
