"""What is stepped: a kind of environment, and who can make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium

__all__ = ["Environment", "Workload"]

Environment = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Workload:
    """A kind of environment. Workloads travel to contenders' processes by pickle."""

    name: str
    make: Callable[[], Environment]
    """Makes one environment."""
    id: str | None = None
    """Its id with Gymnasium, which other libraries may know as well."""
    make_vector: Callable[..., Any] | None = None
    """Makes a vector of Shoal's as ``shoal.make`` does, of a number of environments and options;
    without it vectors are made of ``make``."""

    def vector(self, num_envs: int, **options: Any) -> Any:
        """Make a vector of Shoal's."""
        if self.make_vector is not None:
            return self.make_vector(num_envs, **options)
        import shoal

        return shoal.make(self.make, num_envs, **options)
