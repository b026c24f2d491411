"""What agents remember: transitions in preallocated tensors on the device that learns."""

from shoal.train._replay.memory import Memory, RowLayout
from shoal.train._replay.n_step import NStep, Transitions
from shoal.train._replay.priorities import Priorities

__all__ = ["Memory", "NStep", "Priorities", "RowLayout", "Transitions"]
