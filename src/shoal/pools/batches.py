"""Batches taken apart and put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.pools.base import Batch
from shoal.spaces import Layout
from shoal.spaces.leaves import batch_leaves, batch_of_leaves, join_leaves, take_rows
from shoal.types import Episodes, Event, RawInfos

__all__ = ["batch_rows", "join_batches"]


def batch_rows(layout: Layout, batch: Batch, rows: Sequence[int]) -> Batch:
    """Some rows of a batch, in this order; ``layout`` is of its observations."""
    taken = list(rows)
    observations = take_rows(batch_leaves(layout, batch.observations), taken)
    return Batch(
        batch.slots[taken],
        batch_of_leaves(layout, *observations),
        batch.rewards[taken],
        batch.terminated[taken],
        batch.truncated[taken],
        _info_rows(batch.raw_infos, taken),
    )


def join_batches(layout: Layout, batches: Sequence[Batch]) -> Batch:
    """One batch with the rows of several, one after the other."""
    if len(batches) == 1:
        return batches[0]
    observations = join_leaves([batch_leaves(layout, batch.observations) for batch in batches])
    return Batch(
        np.concatenate([batch.slots for batch in batches]),
        batch_of_leaves(layout, *observations),
        np.concatenate([batch.rewards for batch in batches]),
        np.concatenate([batch.terminated for batch in batches]),
        np.concatenate([batch.truncated for batch in batches]),
        _joined_infos(batches),
    )


def _info_rows(raw: RawInfos | None, rows: list[int]) -> RawInfos | None:
    if raw is None:
        return None
    places = {row: place for place, row in enumerate(rows)}
    events = [(places[row], info) for row, info in raw[0] if row in places]
    events.sort(key=lambda event: event[0])  # what one row tells stays in its order
    episodes: Episodes | None = None
    if raw[1] is not None and raw[1][0][rows].any():
        mask, returns, lengths, seconds = raw[1]
        episodes = mask[rows], returns[rows], lengths[rows], seconds[rows]
    return (events, episodes) if events or episodes is not None else None


def _joined_infos(batches: Sequence[Batch]) -> RawInfos | None:
    told = [(batch.raw_infos, len(batch.slots)) for batch in batches]
    if all(raw is None for raw, _ in told):
        return None
    events: list[Event] = []
    parts: list[Any] = []
    first = 0
    for raw, rows in told:
        if raw is not None:
            events += [(first + row, info) for row, info in raw[0]]
        parts.append(_no_episodes(rows) if raw is None or raw[1] is None else raw[1])
        first += rows
    if all(raw is None or raw[1] is None for raw, _ in told):
        return events, None
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    return events, (columns[0], columns[1], columns[2], columns[3])


def _no_episodes(rows: int) -> tuple[npt.NDArray[Any], ...]:
    return np.zeros(rows, np.bool_), np.zeros(rows), np.zeros(rows, np.int64), np.zeros(rows)
