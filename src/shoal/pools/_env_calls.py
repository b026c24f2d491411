"""Calls of environments that all frontends have in common."""

from __future__ import annotations

from typing import Any

from shoal.pools._base import Pool

__all__ = ["EnvironmentCalls"]


class EnvironmentCalls:
    """Access to methods and attributes of each environment, for a frontend with a ``_pool``."""

    _pool: Pool

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute."""
        return tuple(self._pool.call(name, *args, **kwargs))

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: one value for all, or a list or tuple of values."""
        count = self._pool.num_envs
        if not isinstance(values, list | tuple):
            values = [values] * count
        if len(values) != count:
            raise ValueError(
                "values must be a list or tuple with one for each environment: "
                f"got {len(values)} for {count}"
            )
        for slot, value in enumerate(values):
            self._pool.call("set_wrapper_attr", name, value, slots=[slot])

    def render(self) -> tuple[Any, ...]:
        """Render each environment."""
        return self.call("render")
