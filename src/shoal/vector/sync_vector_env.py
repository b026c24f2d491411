"""A drop-in replacement for ``gymnasium.vector.SyncVectorEnv``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from shoal._spaces import ObservationMode
from shoal.pools import InlinePool
from shoal.pools._environments import EnvFactory
from shoal.vector._pool_vector_env import Arrays, VectorEnv

__all__ = ["SyncVectorEnv"]


# Gymnasium's class is a direct base because some libraries look only at the direct bases.
class SyncVectorEnv(VectorEnv, gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """Steps environments one after the other; takes the arguments of Gymnasium's class.

    Args:
        env_fns: Functions that make the environments.
        copy: Whether ``reset`` and ``step`` return new arrays. If False, they return views that
            stay valid until the batch after next.
        observation_mode: ``"same"``, ``"different"`` for spaces that differ in their bounds, or a
            pair (batched observation space, single observation space).
        autoreset_mode: When a slot whose episode has ended is reset.

    Example:
        >>> import gymnasium as gym
        >>> envs = SyncVectorEnv([
        ...     lambda: gym.make("Pendulum-v1", g=9.81),
        ...     lambda: gym.make("Pendulum-v1", g=1.62),
        ... ])
        >>> envs
        SyncVectorEnv(num_envs=2)
        >>> observations, infos = envs.reset(seed=42)
        >>> observations.shape
        (2, 3)
        >>> envs.close()
    """

    def __init__(
        self,
        env_fns: Iterable[EnvFactory],
        copy: bool = True,
        observation_mode: ObservationMode = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
    ) -> None:
        self.env_fns = list(env_fns)
        self.copy = copy
        self.observation_mode = observation_mode
        pool = InlinePool(
            self.env_fns,
            observation_mode=observation_mode,
            autoreset_mode=AutoresetMode(autoreset_mode),
            copy=copy,
        )
        super().__init__(pool)
