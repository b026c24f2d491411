"""Puts a watcher on a vector, and takes it off again."""

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
"""So much of the time of the thread that steps goes into pictures, unless it is told otherwise."""


def attach(
    watcher: Watcher,
    vector: Any,
    picture_share: float = DEFAULT_PICTURE_SHARE,
    on_end: Callable[[], None] = lambda: None,
) -> Callable[[], None]:
    """Let a watcher see every batch of a vector, until the vector is closed.

    Args:
        watcher: Who watches.
        vector: One of Shoal's, wrapped or not, by Gymnasium's interface or by Stable-Baselines3's.
        picture_share: Which part of the time of the thread that steps goes into pictures at the
            most.
        on_end: Called when the vector has been closed.

    Returns:
        What takes the watcher off again.

    Raises:
        TypeError: The vector is none of Shoal's.
        ValueError: It is watched already.
    """
    if not 0 <= picture_share <= 1:
        raise ValueError(f"picture_share must be between 0 and 1, got {picture_share}")
    frontend = _frontend(vector)
    if isinstance(frontend.pool, WatchedPool):
        raise ValueError("the vector is shown on a page already: close that one first")
    pool: Pool = frontend.pool
    plan = getattr(frontend, "plan", None)
    meter = watcher.attach(pool, "" if plan is None else str(plan), picture_share)
    watched = WatchedPool(pool, watcher, meter, on_end)
    frontend.pool = watched
    return partial(_detach, weakref.ref(watched), weakref.ref(frontend))


def _detach(watched: weakref.ref[WatchedPool], frontend: weakref.ref[Any]) -> None:
    pool, vector = watched(), frontend()  # which may be gone, and must not live for this
    if pool is not None and vector is not None and vector.pool is pool:
        vector.pool = pool.inner


def vector_title(vector: Any) -> str:
    """What a vector is called: after its environment, if that is known."""
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
            "what can be watched are vectors of Shoal's, as shoal.make, shoal.vector and shoal.sb3 "
            f"make them; this is a {type(frontend).__name__}"
        )
    return frontend
