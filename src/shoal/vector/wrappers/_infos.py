"""A wrapper that converts infos to a list with a dict for each slot."""

from __future__ import annotations

from typing import Any

from shoal.vector._infos import infos_as_list
from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import Step, VectorWrapper

__all__ = ["DictInfoToList"]


class DictInfoToList(VectorWrapper):
    """Converts infos from a dict of columns to a list with a dict for each slot.

    It must be the outermost wrapper, since Gymnasium's wrappers do not support lists. Infos that
    are a list already are left unchanged.

    Args:
        env: The vector to wrap.

    Example:
        >>> import shoal
        >>> envs = shoal.make("FrozenLake-v1", num_envs=2, backend="inline")
        >>> with DictInfoToList(envs) as envs:
        ...     envs.reset(seed=0)[1]
        [{'prob': np.int64(1)}, {'prob': np.int64(1)}]
    """

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and convert its infos."""
        _, observations, infos = self._reset_slots(seed, options)
        return observations, infos_as_list(infos, self.num_envs)

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and convert its infos."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, rewards, terminated, truncated, infos_as_list(infos, self.num_envs)
