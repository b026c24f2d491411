"""OpenAI Gym's functions on spaces, which are those of Gymnasium."""

from gymnasium.spaces.utils import flatdim, flatten, flatten_space, unflatten

__all__ = ["flatdim", "flatten", "flatten_space", "unflatten"]
