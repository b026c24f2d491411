"""The Ray pool: actors of a cluster, each of which hosts a pool for its share of the slots.

Nothing here imports Ray before a pool is made.
"""

from shoal.pools.ray.cluster import Placement
from shoal.pools.ray.part import Part
from shoal.pools.ray.pool import RayPool

__all__ = ["Part", "Placement", "RayPool"]
