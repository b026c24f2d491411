"""The Gymnasium frontend: drop-in replacements for ``gymnasium.vector``.

How it works: docs/internals/frontends.md.
"""

from gymnasium.vector import AutoresetMode

from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector.async_vector_env import AsyncState, AsyncVectorEnv
from shoal.vector.sync_vector_env import SyncVectorEnv

__all__ = ["AsyncState", "AsyncVectorEnv", "AutoresetMode", "SyncVectorEnv", "VectorEnv"]
