"""Small Ray pools for tests, with actors that reserve less than one CPU."""

import time
from functools import partial

from shoal.pools import InlinePool
from shoal.pools._ray import ActorRecipe, RayPool
from shoal.pools._ray.cluster import Cluster
from tests.faulty import FaultyEnv, fault

CPUS = 0.25
NOTHING = fault("nothing")


def ray_pool(factories, counts, build=InlinePool, ray_options=None, **options):
    """Return a pool with one actor for each of these counts of slots."""
    recipes, first = [], 0
    for count in counts:
        share = list(factories[first : first + count])
        recipes.append(ActorRecipe(count, partial(build, share, **options), share))
        first += count
    assert first == len(factories)
    return RayPool(recipes, Cluster(None), cpus=CPUS, **(ray_options or {}))


def actions(slot, name, count=4):
    """Return an action for each slot: this fault for one slot, no fault for the others."""
    batch = [NOTHING] * count
    batch[slot] = fault(name)
    return batch


def started_pool(counts=(2, 2), on_crash="raise", ray_options=None, **options):
    """Return a pool whose slots were reset with the seeds 0, 1, 2, ..."""
    factories = [partial(FaultyEnv, label) for label in range(sum(counts))]
    all_ray_options = {"on_crash": on_crash, **(ray_options or {})}
    pool = ray_pool(factories, counts, ray_options=all_ray_options, **options)
    pool.reset(seeds=range(pool.num_envs))
    pool.recv()
    return pool


def actors(ray):
    """Return the actors that are alive."""
    from ray._private.state import actors as all_actors

    return [actor for actor in all_actors().values() if actor["State"] != "DEAD"]


def wait_until(condition, seconds):
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "the condition did not become true in time"
        time.sleep(0.02)
