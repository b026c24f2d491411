"""The environment to step, and how to create it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium

__all__ = ["Environment", "Workload"]

Environment = gymnasium.Env[Any, Any]


@dataclass(frozen=True)
class Workload:
    """An environment to measure. Workloads are pickled and sent to contenders' processes."""

    name: str
    make: Callable[[], Environment]
    """Creates one environment."""
    id: str | None = None
    """Its Gymnasium id, which other libraries may know too."""
    make_vector: Callable[..., Any] | None = None
    """Creates a vector of Shoal like ``shoal.make``, given a number of environments and options; by
    default ``shoal.make`` is called with ``make``."""

    def vector(self, num_envs: int, **options: Any) -> Any:
        """Create a vector of Shoal."""
        if self.make_vector is not None:
            return self.make_vector(num_envs, **options)
        import shoal

        return shoal.make(self.make, num_envs, **options)
