"""Registration of Shoal's environments with Gymnasium."""

from __future__ import annotations

from typing import Any, Literal

from shoal._envs.hockey.kernels import make_kernel
from shoal._envs.hockey.registration import register
from shoal._make import make
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["make_hockey_vector", "register_environments"]


def register_environments() -> None:
    """Register Shoal's environments with Gymnasium.

    Called on import, since Gymnasium has no plugin system since 1.0. Worker processes repeat the
    registrations of their parent.
    """
    register(vector_entry_point=f"{__name__}:{make_hockey_vector.__name__}")


def make_hockey_vector(
    num_envs: int = 1,
    *,
    players: Literal[1, 2],
    discrete: bool,
    mode: Any = "NORMAL",
    keep_mode: bool = True,
    opponent: str | None = None,
    **options: Any,
) -> VectorEnv:
    """Make hockey matches for ``gymnasium.make_vec``; ``options`` are those of :func:`make`."""
    kernel = make_kernel(
        players, discrete=discrete, mode=mode, keep_mode=keep_mode, opponent=opponent
    )
    envs: VectorEnv = make(kernel, num_envs, **options)
    return envs
