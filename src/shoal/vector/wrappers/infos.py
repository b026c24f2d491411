"""Infos as a list with a dict for each slot."""

from __future__ import annotations

from typing import Any

from shoal.vector.seeding import Seed
from shoal.vector.wrappers.base import Step, VectorWrapper

__all__ = ["DictInfoToList"]


class DictInfoToList(VectorWrapper):
    """Turns infos from a dict of columns into a list with a dict for each slot.

    It goes outermost: other wrappers of Gymnasium's cannot read lists. Infos that are a list
    already stay as they are.

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
        """Reset the wrapped vector; the infos are a list."""
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        return observations, _listed(infos, self.num_envs)

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector; the infos are a list."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, rewards, terminated, truncated, _listed(infos, self.num_envs)


def _listed(infos: Any, num_envs: int) -> list[dict[str, Any]]:
    if isinstance(infos, list):
        return infos
    listed: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for key, column in infos.items():
        if key.startswith("_"):
            continue
        values = _listed(column, num_envs) if isinstance(column, dict) else column
        if len(values) != num_envs:
            raise ValueError(f"info {key!r} has {len(values)} rows for {num_envs} slots")
        mask = infos.get(f"_{key}")
        for slot, value in enumerate(values):
            if mask is None or mask[slot]:
                listed[slot][key] = value
    return listed
