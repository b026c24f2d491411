"""The names by which Gymnasium and :func:`shoal.make` know hockey."""

from __future__ import annotations

from typing import Any

import gymnasium

from shoal.envs.single import KernelEnv
from shoal.hockey.kernels import make_kernel

__all__ = ["ENTRY_POINT", "make_env", "make_vector", "register"]

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


def make_vector(num_envs: int = 1, **arguments: Any) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    """Many matches, for ``gymnasium.make_vec``."""
    from shoal.make import make

    names = ("players", "discrete", "mode", "keep_mode", "opponent")
    chosen = {name: arguments.pop(name) for name in names if name in arguments}
    return make(make_kernel(**chosen), num_envs, **arguments)


def register() -> None:
    """Tell Gymnasium the names."""
    for name, arguments in _ENVIRONMENTS.items():
        gymnasium.register(
            name,
            ENTRY_POINT,
            vector_entry_point=f"{__name__}:make_vector",
            kwargs=arguments,
        )
