"""Resets in the same step, on top of a pool that resets later or not at all."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
from gymnasium.vector.utils import iterate

from shoal.pools import Pool
from shoal.types import Results

__all__ = ["reset_ended"]


def reset_ended(pool: Pool, results: Results) -> Results:
    """Reset the slots whose episode has ended, and return what a pool would that does so itself."""
    observations, rewards, terminated, truncated, raw = results
    ended = np.flatnonzero(terminated | truncated)
    if not ended.size:
        return results
    events, episodes = raw or ([], None)
    infos = dict(events)
    rows = list(iterate(pool.spaces.observation, observations))
    for slot in ended.tolist():
        final = deepcopy(rows[slot])
        infos[slot] = {"final_obs": final, "final_info": infos.get(slot, {})}
    # Of these arrays, those of a pool of views are about to be used again.
    rewards, terminated, truncated = rewards.copy(), terminated.copy(), truncated.copy()
    pool.reset(ended)
    batch = pool.recv()
    resets = [(int(ended[row]), info) for row, info in (batch.raw_infos or ([], None))[0]]
    return (
        pool.latest(),
        rewards,
        terminated,
        truncated,
        ([*infos.items(), *resets], episodes),
    )
