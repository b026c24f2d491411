"""What agents remember: transitions in preallocated tensors on the device that learns."""

from shoal.train.replay.memory import Memory, RowLayout
from shoal.train.replay.n_step import NStep, Transitions
from shoal.train.replay.priorities import Priorities

__all__ = ["Memory", "NStep", "Priorities", "RowLayout", "Transitions"]
