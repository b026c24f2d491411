"""What Gymnasium is told when Shoal is imported.

The names of Shoal's own environments, and ``gymnasium.make_vec(..., vectorization_mode="shoal")``.
Gymnasium has a fixed list of vectorization modes and no way to add one, so importing Shoal puts a
function of the same signature in the place of ``gymnasium.make_vec``. It answers for this one mode,
also where a spec names it, and hands every other call on as it is. (A name ``make_vec`` that was
imported from Gymnasium before Shoal was imported stays Gymnasium's.)
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any, Literal

import gymnasium
from gymnasium.envs import registration
from gymnasium.envs.registration import EnvSpec

from shoal._envs.hockey.kernels import make_kernel
from shoal._envs.hockey.registration import register
from shoal._make import make
from shoal.vector._pool_vector_env import VectorEnv

__all__ = [
    "VECTORIZATION_MODE",
    "make_hockey_vector",
    "register_environments",
    "register_vectorization_mode",
]

VECTORIZATION_MODE = "shoal"

_original = registration.make_vec


@wraps(_original)
def _make_vec(
    id: str | EnvSpec,  # noqa: A002 - Gymnasium's name for it
    num_envs: int = 1,
    vectorization_mode: Any = None,
    vector_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Any] | None = None,
    **kwargs: Any,
) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    named_by_spec = isinstance(id, EnvSpec) and id.kwargs.get("vectorization_mode")
    options = {**(vector_kwargs or {}), **kwargs}
    if named_by_spec == VECTORIZATION_MODE:
        return make(id, wrappers=wrappers or (), **options)
    if vectorization_mode == VECTORIZATION_MODE:
        return make(id, num_envs, wrappers=wrappers or (), **options)
    return _original(id, num_envs, vectorization_mode, vector_kwargs, wrappers, **kwargs)


def register_vectorization_mode() -> None:
    """Let ``gymnasium.make_vec`` know the mode ``"shoal"``."""
    registration.make_vec = _make_vec
    gymnasium.make_vec = _make_vec


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
    """Matches of hockey, for ``gymnasium.make_vec``; ``options`` are those of :func:`make`."""
    kernel = make_kernel(
        players, discrete=discrete, mode=mode, keep_mode=keep_mode, opponent=opponent
    )
    return make(kernel, num_envs, **options)


def register_environments() -> None:
    """Let Gymnasium know the environments that come with Shoal."""
    register(vector_entry_point=f"{__name__}:{make_hockey_vector.__name__}")
