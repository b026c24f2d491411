"""The Ray pool: actors of a cluster, each of which hosts a pool for its share of the slots.

Nothing here imports Ray before a pool is made.

How it works: docs/internals/clusters.md.
"""

from shoal.pools._ray.actor_recipe import Part
from shoal.pools._ray.cluster import Placement
from shoal.pools._ray.pool import RayPool

__all__ = ["Part", "Placement", "RayPool"]
