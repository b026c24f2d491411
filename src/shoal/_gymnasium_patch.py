"""The ``"shoal"`` vectorization mode of ``gymnasium.make_vec``.

Gymnasium's list of vectorization modes is fixed, so this mode needs ``gymnasium.make_vec`` to be
replaced. That happens only when :func:`patch_gymnasium` is called.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import wraps
from typing import Any

import gymnasium
from gymnasium.envs import registration
from gymnasium.envs.registration import EnvSpec

from shoal._make import make

__all__ = ["patch_gymnasium", "unpatch_gymnasium"]

_MODE = "shoal"

_original = registration.make_vec


def patch_gymnasium() -> None:
    """Add ``vectorization_mode="shoal"`` to ``gymnasium.make_vec``.

    Replaces ``gymnasium.make_vec`` by a function that passes calls with this mode to
    :func:`shoal.make`, and all others to the original. It also accepts the ``spec`` of a Shoal
    vector. A ``make_vec`` that was imported by name before this call remains the original.
    Calling it again has no effect. :func:`unpatch_gymnasium` restores the original.

    Example:
        >>> import gymnasium
        >>> patch_gymnasium()
        >>> options = {"statistics": True}
        >>> gymnasium.make_vec("CartPole-v1", 2, vectorization_mode="shoal", vector_kwargs=options)
        KernelVectorEnv(CartPole-v1, num_envs=2)
        >>> unpatch_gymnasium()
    """
    if registration.make_vec is not _make_vec:
        global _original
        _original = registration.make_vec
    gymnasium.make_vec = registration.make_vec = _make_vec


def unpatch_gymnasium() -> None:
    """Restore the original ``gymnasium.make_vec``; does nothing without a patch."""
    if gymnasium.make_vec is _make_vec:
        gymnasium.make_vec = _original
    if registration.make_vec is _make_vec:
        registration.make_vec = _original


@wraps(registration.make_vec)
def _make_vec(
    id: str | EnvSpec,  # noqa: A002 - Gymnasium's name for it
    num_envs: int = 1,
    vectorization_mode: Any = None,
    vector_kwargs: dict[str, Any] | None = None,
    wrappers: Sequence[Any] | None = None,
    **kwargs: Any,
) -> gymnasium.vector.VectorEnv[Any, Any, Any]:
    options = {**(vector_kwargs or {}), **kwargs}
    if isinstance(id, EnvSpec) and id.kwargs.get("vectorization_mode") == _MODE:
        return make(id, wrappers=wrappers or (), **options)
    if vectorization_mode == _MODE:
        return make(id, num_envs, wrappers=wrappers or (), **options)
    return _original(id, num_envs, vectorization_mode, vector_kwargs, wrappers, **kwargs)
