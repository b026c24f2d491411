"""Attach a watcher to a vector, and detach it."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

from shoal.live._watched_pool import WatchedPool
from shoal.live._watcher import Watcher
from shoal.pools import Pool

__all__ = ["DEFAULT_PICTURE_SHARE", "attach", "vector_title"]

DEFAULT_PICTURE_SHARE = 0.006
"""The default share of the stepping thread's time that may be spent on rendering frames."""


def attach(
    watcher: Watcher,
    vector: Any,
    picture_share: float = DEFAULT_PICTURE_SHARE,
    on_end: Callable[[], None] = lambda: None,
) -> Callable[[], None]:
    """Let a watcher observe every batch of a vector until the vector is closed.

    Args:
        watcher: The watcher.
        vector: A vector of Shoal with Gymnasium's or Stable-Baselines3's interface; may be wrapped.
        picture_share: The maximum share of the stepping thread's time to spend on rendering frames.
        on_end: Called when the vector has been closed.

    Returns:
        A function that detaches the watcher.

    Raises:
        TypeError: The vector is not one of Shoal's.
        ValueError: The vector is already watched, or ``picture_share`` is out of range.
    """
    if not 0 <= picture_share <= 1:
        raise ValueError(f"picture_share must be between 0 and 1, got {picture_share}")
    frontend = _frontend(vector)
    if isinstance(frontend.pool, WatchedPool):
        raise ValueError("the vector is already shown on a page; close that page first")
    pool: Pool = frontend.pool
    plan = getattr(frontend, "plan", None)
    meter = watcher.attach(pool, "" if plan is None else str(plan), picture_share)
    watched = WatchedPool(pool, watcher, meter, on_end)
    frontend.pool = watched
    return partial(_detach, weakref.ref(watched), weakref.ref(frontend))


def _detach(watched: weakref.ref[WatchedPool], frontend: weakref.ref[Any]) -> None:
    pool, vector = watched(), frontend()  # weak references, to not keep the vector alive
    if pool is not None and vector is not None and vector.pool is pool:
        vector.pool = pool.inner


def vector_title(vector: Any) -> str:
    """Return the vector's name: the id of its environment, if known."""
    frontend = _frontend(vector)
    spec = getattr(frontend, "spec", None)
    kernel = getattr(getattr(frontend.pool, "inner", frontend.pool), "kernel", None)
    if spec is not None:
        return str(spec.id)
    return type(frontend).__name__ if kernel is None else str(kernel.name)


def _frontend(vector: Any) -> Any:
    frontend = getattr(vector, "unwrapped", vector)
    described = getattr(type(frontend), "pool", None)
    if not isinstance(described, property) or described.fset is None:
        raise TypeError(
            "expected a vector made by shoal.make, shoal.vector or shoal.sb3, got an object of "
            f"type {type(frontend).__name__}"
        )
    return frontend
