"""A drop-in replacement for Stable-Baselines3's ``DummyVecEnv``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import dummy_vec_env as original

from shoal.legacy._openai_gym import gymnasium_env
from shoal.pools import InlinePool
from shoal.sb3._pool_vec_env import PoolVecEnv
from shoal.sb3.base_vec_env import counterpart_of

__all__ = ["DummyVecEnv"]


@counterpart_of(original.DummyVecEnv)
class DummyVecEnv(PoolVecEnv):
    """Steps environments one after the other, in the calling process.

    Args:
        env_fns: Functions that make the environments.

    Raises:
        ValueError: ``env_fns`` is empty, or two functions have returned the same object.
        SpaceMismatchError: The spaces of the environments differ.

    Example:
        >>> import gymnasium as gym
        >>> vec_env = DummyVecEnv([lambda: gym.make("CartPole-v1")] * 2)
        >>> vec_env.reset().shape
        (2, 4)
        >>> observations, rewards, dones, infos = vec_env.step([1, 0])
        >>> infos
        [{'TimeLimit.truncated': False}, {'TimeLimit.truncated': False}]
        >>> vec_env.close()
    """

    _pool: InlinePool

    def __init__(self, env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]]) -> None:
        factories = [partial(gymnasium_env, env_fn) for env_fn in env_fns]
        pool = InlinePool(factories, autoreset_mode=AutoresetMode.SAME_STEP)
        super().__init__(pool)
        self.metadata = pool.envs[0].metadata

    @property
    def envs(self) -> list[gymnasium.Env[Any, Any]]:
        """The environments; entries may be replaced."""
        return self._pool.envs

    @envs.setter
    def envs(self, envs: Sequence[gymnasium.Env[Any, Any]]) -> None:
        if len(envs) != self.num_envs:
            raise ValueError(f"got {len(envs)} environments for {self.num_envs} slots")
        self._pool.envs[:] = envs
