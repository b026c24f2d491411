"""Resets in the same step, on top of a pool that resets later or not at all."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector.utils import iterate

from shoal._types import CRASHED, Results, as_events
from shoal.pools import Pool

__all__ = ["reset_ended"]


def reset_ended(pool: Pool, results: Results, before: Any) -> Results:
    """Reset the slots whose episode has ended, and return what a pool would that does so itself.

    Args:
        pool: The pool, which resets slots later or not at all.
        results: Those of a step of all slots.
        before: The observations before that step, if the pool restarts slots.
    """
    observations, rewards, terminated, truncated, raw = results
    ended = np.flatnonzero(terminated | truncated)
    if not ended.size:
        return results
    events, episodes = as_events(raw, pool.num_envs) or ([], None)
    infos: dict[int, dict[str, Any]] = {}
    for slot, info in events:  # a slot that was restarted tells twice
        infos[slot] = {**infos.get(slot, {}), **info}
    rows = list(iterate(pool.spaces.observation, observations))
    over = []
    for slot in ended.tolist():
        info = infos.get(slot, {})
        if pool.restarts and info.get(CRASHED) is True and not terminated[slot]:
            # The next episode has begun. What the last one would have ended with is lost.
            last = list(iterate(pool.spaces.observation, before))[slot]
        else:
            over.append(slot)
            last = rows[slot]
        infos[slot] = {"final_obs": deepcopy(last), "final_info": info}
    if not over:
        return observations, rewards, terminated, truncated, (list(infos.items()), episodes)
    # Of these arrays, those of a pool of views are about to be used again.
    rewards, terminated, truncated = rewards.copy(), terminated.copy(), truncated.copy()
    pool.reset(over)
    batch = pool.recv()
    resets = [(over[row], info) for row, info in (batch.raw_infos or ([], None))[0]]
    return (
        pool.latest(),
        rewards,
        terminated,
        truncated,
        ([*infos.items(), *resets], episodes),
    )
