"""The Ray pool: actors of a Ray cluster, each with a pool for its share of the slots.

Ray is imported when a pool is made, not before.

How it works: docs/internals/clusters.md.
"""

from shoal.pools._ray.actor_recipe import ActorRecipe
from shoal.pools._ray.cluster import Placement
from shoal.pools._ray.pool import RayPool

__all__ = ["ActorRecipe", "Placement", "RayPool"]
