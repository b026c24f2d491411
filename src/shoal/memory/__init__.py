"""Memory: the arena, one block that holds every column of a vector."""

from shoal.memory.arena import Arena, Field
from shoal.memory.board import BoardMemory
from shoal.memory.columns import VectorColumns

__all__ = ["Arena", "BoardMemory", "Field", "VectorColumns"]
