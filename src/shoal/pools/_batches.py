"""Batches taken apart and put together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._spaces import Layout
from shoal._spaces.leaves import batch_leaves, batch_of_leaves, join_leaves, take_rows
from shoal._types import ColumnInfos, Episodes, Event, Finals, RawInfos
from shoal.pools._base import Batch

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
        _joined_infos(layout, batches),
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


def _joined_infos(layout: Layout, batches: Sequence[Batch]) -> RawInfos | ColumnInfos | None:
    columns = [batch.infos for batch in batches if isinstance(batch.infos, ColumnInfos)]
    alike = all(infos.columns.keys() == columns[0].columns.keys() for infos in columns)
    if columns and len(columns) == len(batches) and alike:
        return _joined_columns(layout, columns, [len(batch.slots) for batch in batches])
    told = [(batch.raw_infos, len(batch.slots)) for batch in batches]
    if all(raw is None for raw, _ in told):
        return None
    events: list[Event] = []
    first = 0
    for raw, rows in told:
        if raw is not None:
            events += [(first + row, info) for row, info in raw[0]]
        first += rows
    return events, _joined_episodes([(raw and raw[1], rows) for raw, rows in told])


def _joined_columns(
    layout: Layout, parts: Sequence[ColumnInfos], counts: Sequence[int]
) -> ColumnInfos:
    columns = {
        key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns
    }
    episodes = _joined_episodes(
        [(part.episodes, rows) for part, rows in zip(parts, counts, strict=True)]
    )
    firsts = np.cumsum([0, *counts])
    ended = [
        part.finals._replace(rows=part.finals.rows + first)
        for part, first in zip(parts, firsts, strict=False)
        if part.finals is not None
    ]
    if not ended:
        return ColumnInfos(columns, episodes, None)
    observations = join_leaves([batch_leaves(layout, finals.observations) for finals in ended])
    finals = Finals(
        np.concatenate([finals.rows for finals in ended]),
        batch_of_leaves(layout, *observations),
        {key: np.concatenate([each.columns[key] for each in ended]) for key in ended[0].columns},
    )
    return ColumnInfos(columns, episodes, finals)


def _joined_episodes(parts: Sequence[tuple[Episodes | None, int]]) -> Episodes | None:
    if all(episodes is None for episodes, _ in parts):
        return None
    told = [_no_episodes(rows) if episodes is None else episodes for episodes, rows in parts]
    columns = [np.concatenate(column) for column in zip(*told, strict=True)]
    return columns[0], columns[1], columns[2], columns[3]


def _no_episodes(rows: int) -> tuple[npt.NDArray[Any], ...]:
    return np.zeros(rows, np.bool_), np.zeros(rows), np.zeros(rows, np.int64), np.zeros(rows)
