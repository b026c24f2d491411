"""Same-step resets on top of a pool with another autoreset mode."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from gymnasium.vector.utils import iterate

from shoal._types import CRASHED, Results, as_events
from shoal.pools import Pool

__all__ = ["reset_finished_slots"]


def reset_finished_slots(pool: Pool, results: Results, previous: Any) -> Results:
    """Reset the slots whose episode has ended, and return the results of a SAME_STEP pool.

    Args:
        pool: The pool, whose autoreset mode is not SAME_STEP.
        results: The results of a step of all slots.
        previous: The observations before that step, if the pool restarts slots.
    """
    observations, rewards, terminated, truncated, raw = results
    ended = np.flatnonzero(terminated | truncated)
    if not ended.size:
        return results
    events, episodes = as_events(raw, pool.num_envs) or ([], None)
    infos: dict[int, dict[str, Any]] = {}
    for slot, info in events:  # a slot that was restarted has two events
        infos[slot] = {**infos.get(slot, {}), **info}
    rows = list(iterate(pool.spaces.observation, observations))
    finished = []
    for slot in ended.tolist():
        info = infos.get(slot, {})
        if pool.restarts and info.get(CRASHED) is True and not terminated[slot]:
            # The next episode has started, and the final observation was lost in the crash.
            last = list(iterate(pool.spaces.observation, previous))[slot]
        else:
            finished.append(slot)
            last = rows[slot]
        infos[slot] = {"final_obs": deepcopy(last), "final_info": info}
    if not finished:
        return observations, rewards, terminated, truncated, (list(infos.items()), episodes)
    # The arrays may be views, which the reset overwrites.
    rewards, terminated, truncated = rewards.copy(), terminated.copy(), truncated.copy()
    pool.reset(finished)
    batch = pool.recv()
    resets = [(finished[row], info) for row, info in (batch.raw_infos or ([], None))[0]]
    return (
        pool.latest(),
        rewards,
        terminated,
        truncated,
        ([*infos.items(), *resets], episodes),
    )
