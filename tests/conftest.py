"""One Ray for all tests of a process that need one."""

import os

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


@pytest.fixture(scope="session")
def ray_here():
    """Ray, as a user would have started it before."""
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=150_000_000,
        log_to_driver=False,
        logging_level="ERROR",
    )
    yield ray
    ray.shutdown()
