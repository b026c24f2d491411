"""Wrappers that transform rewards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import gymnasium.vector
import numpy as np
from gymnasium.wrappers import transform_reward

from shoal.vector.wrappers._base import Arrays, VectorRewardWrapper

__all__ = ["ClipReward", "TransformReward", "VectorizeTransformReward"]

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]


class TransformReward(VectorRewardWrapper):
    """Transforms the rewards of all slots with a function.

    Args:
        env: The vector to wrap.
        func: Takes the rewards of all slots, and returns the transformed ones.

    Example:
        >>> import shoal
        >>> envs = shoal.make("CartPole-v1", num_envs=2, backend="inline")
        >>> with TransformReward(envs, lambda rewards: rewards * 10) as envs:
        ...     _ = envs.reset(seed=0)
        ...     envs.step([0, 1])[1]
        array([10., 10.])
    """

    def __init__(self, env: Vector, func: Callable[[Any], Any]) -> None:
        super().__init__(env)
        self.func = func

    def rewards(self, rewards: Any) -> Any:
        """Return the transformed rewards."""
        return self.func(rewards)


class VectorizeTransformReward(VectorRewardWrapper):
    """Applies a wrapper for single environments to the reward of each slot.

    Args:
        env: The vector to wrap.
        wrapper: The class of the wrapper, such as ``gymnasium.wrappers.TransformReward``.
        **kwargs: Arguments of its constructor besides the environment.
    """

    def __init__(
        self, env: Vector, wrapper: type[gymnasium.RewardWrapper[Any, Any]], **kwargs: Any
    ) -> None:
        super().__init__(env)
        self.wrapper: Any = wrapper(gymnasium.Env(), **kwargs)

    def rewards(self, rewards: Any) -> Arrays:
        """Return the rewards transformed by the wrapper, one by one."""
        transformed = np.array(rewards)
        for slot, reward in enumerate(rewards):
            transformed[slot] = self.wrapper.reward(reward)
        return transformed


class ClipReward(VectorizeTransformReward):
    """Clips rewards to a lower bound, an upper bound, or both.

    Args:
        env: The vector to wrap.
        min_reward: The lowest reward, None for no bound.
        max_reward: The highest reward, None for no bound.

    Example:
        >>> import shoal
        >>> envs = shoal.make("Pendulum-v1", num_envs=2, backend="inline")
        >>> with ClipReward(envs, min_reward=-0.05) as envs:
        ...     _ = envs.reset(seed=0)
        ...     envs.step([[0.0], [0.0]])[1]
        array([-0.05, -0.05])
    """

    def __init__(
        self,
        env: Vector,
        min_reward: float | Arrays | None = None,
        max_reward: float | Arrays | None = None,
    ) -> None:
        super().__init__(
            env, transform_reward.ClipReward, min_reward=min_reward, max_reward=max_reward
        )
        bounds = (min_reward, max_reward)
        self._has_one_bound_for_all = not any(isinstance(bound, np.ndarray) for bound in bounds)

    def rewards(self, rewards: Any) -> Arrays:
        """Return the clipped rewards."""
        if not self._has_one_bound_for_all:
            return super().rewards(rewards)
        clipped: Arrays = self.wrapper.func(rewards).astype(rewards.dtype, copy=False)
        return clipped
