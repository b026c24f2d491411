"""Builds the raw infos of a batch from the outcomes that workers report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter

import numpy as np

from shoal._types import RawInfos
from shoal.pools._messages import Outcome

__all__ = ["raw_infos"]

_slot_of = itemgetter(0)


def raw_infos(
    outcomes: Sequence[Outcome], rows: Mapping[int, int] | None, count: int
) -> RawInfos | None:
    """Return the raw infos of a batch of ``count`` rows, or None if there are none.

    Args:
        outcomes: The outcomes, in the order of the rows.
        rows: The row of each slot; None if row and slot are the same.
        count: The number of rows.
    """
    if not outcomes:
        return None
    # Threads of a worker may finish slots in any order; infos are in the order of slots.
    events = [event for outcome in outcomes for event in sorted(outcome.events, key=_slot_of)]
    episodes = [episode for outcome in outcomes for episode in outcome.episodes]
    if not events and not episodes:
        return None
    if rows is not None:
        events = [(rows[slot], info) for slot, info in events]
        episodes = [(rows[slot], *rest) for slot, *rest in episodes]  # type: ignore[misc]
    if not episodes:
        return events, None
    mask = np.zeros(count, np.bool_)
    returns, lengths = np.zeros(count), np.zeros(count, np.int64)
    seconds = np.zeros(count)
    for row, episode_return, length, duration in episodes:
        mask[row] = True
        returns[row], lengths[row], seconds[row] = episode_return, length, duration
    return events, (mask, returns, lengths, seconds)
