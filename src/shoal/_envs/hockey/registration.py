"""The names by which Gymnasium and :func:`shoal.make` know hockey."""

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
    """One match, as a Gymnasium environment."""
    return KernelEnv(make_kernel(**arguments), render_mode)


def register(vector_entry_point: str) -> None:
    """Tell Gymnasium the names, and what makes a vector of such environments."""
    for name, arguments in _ENVIRONMENTS.items():
        gymnasium.register(
            name,
            ENTRY_POINT,
            vector_entry_point=vector_entry_point,
            kwargs=arguments,
        )
