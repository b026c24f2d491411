"""Memory: the arena, one block that holds every column of a vector."""

from shoal.memory.arena import Arena, Field
from shoal.memory.columns import VectorColumns

__all__ = ["Arena", "Field", "VectorColumns"]
