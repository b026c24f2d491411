"""Replay buffers: transitions in preallocated tensors on the training device."""

from shoal.train._replay.n_step import NStepBuffer, Transitions
from shoal.train._replay.priorities import Priorities
from shoal.train._replay.replay_buffer import ReplayBuffer, RowLayout

__all__ = ["NStepBuffer", "Priorities", "ReplayBuffer", "RowLayout", "Transitions"]
