"""Registration of the hockey environments with Gymnasium."""

from __future__ import annotations

from typing import Any

import gymnasium

from shoal._envs.hockey.kernels import make_kernel
from shoal._envs.single_env import KernelEnv

__all__ = ["ENTRY_POINT", "make_env", "register"]

ENTRY_POINT = f"{__name__}:make_env"

_ENVIRONMENTS: dict[str, dict[str, Any]] = {
    "shoal/Hockey-v0": {"players": 2, "discrete": False},
    "shoal/HockeyDiscrete-v0": {"players": 2, "discrete": True},
    "shoal/HockeyOne-v0": {"players": 1, "discrete": False, "opponent": "strong"},
    "shoal/HockeyOneDiscrete-v0": {"players": 1, "discrete": True, "opponent": "strong"},
}


def make_env(render_mode: str | None = None, **arguments: Any) -> KernelEnv:
    """Create a single hockey environment."""
    return KernelEnv(make_kernel(**arguments), render_mode)


def register(vector_entry_point: str) -> None:
    """Register the environments, and the entry point that makes vectors of them."""
    for name, arguments in _ENVIRONMENTS.items():
        gymnasium.register(
            name,
            ENTRY_POINT,
            vector_entry_point=vector_entry_point,
            kwargs=arguments,
        )
