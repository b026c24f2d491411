"""Ray pools as tests want them: small, and with actors that take less than a CPU."""

import time
from functools import partial

from shoal.pools import InlinePool
from shoal.pools._ray import Part, RayPool
from shoal.pools._ray.cluster import Cluster

CPUS = 0.25


def ray_pool(factories, counts, build=InlinePool, ray_options=None, **options):
    """A pool with an actor for each of these counts of slots."""
    parts, first = [], 0
    for count in counts:
        share = list(factories[first : first + count])
        parts.append(Part(count, partial(build, share, **options), share))
        first += count
    assert first == len(factories)
    return RayPool(parts, Cluster(None), cpus=CPUS, **(ray_options or {}))


def actors(ray):
    """The actors that are alive."""
    from ray._private.state import actors as known

    return [each for each in known().values() if each["State"] != "DEAD"]


def wait_until(condition, seconds):
    """Wait for something that happens elsewhere."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)
