"""Memory of a vector: the arena with its columns, and the board."""

from shoal._memory.arena import Arena, Field
from shoal._memory.board import BoardMemory
from shoal._memory.columns import VectorColumns

__all__ = ["Arena", "BoardMemory", "Field", "VectorColumns"]
