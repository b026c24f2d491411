"""Taking rows from batches, and joining batches."""

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
    """Return these rows of a batch, in this order; ``layout`` is that of its observations."""
    chosen = list(rows)
    observations = take_rows(batch_leaves(layout, batch.observations), chosen)
    return Batch(
        batch.slots[chosen],
        batch_of_leaves(layout, *observations),
        batch.rewards[chosen],
        batch.terminated[chosen],
        batch.truncated[chosen],
        _info_rows(batch.raw_infos, chosen),
    )


def join_batches(layout: Layout, batches: Sequence[Batch]) -> Batch:
    """Return one batch with the rows of several batches, in order."""
    if len(batches) == 1:
        return batches[0]
    observations = join_leaves([batch_leaves(layout, batch.observations) for batch in batches])
    return Batch(
        np.concatenate([batch.slots for batch in batches]),
        batch_of_leaves(layout, *observations),
        np.concatenate([batch.rewards for batch in batches]),
        np.concatenate([batch.terminated for batch in batches]),
        np.concatenate([batch.truncated for batch in batches]),
        _join_infos(layout, batches),
    )


def _info_rows(raw: RawInfos | None, rows: list[int]) -> RawInfos | None:
    if raw is None:
        return None
    new_rows = {row: new_row for new_row, row in enumerate(rows)}
    events = [(new_rows[row], info) for row, info in raw[0] if row in new_rows]
    events.sort(key=lambda event: event[0])  # stable: the events of a row keep their order
    episodes: Episodes | None = None
    if raw[1] is not None and raw[1][0][rows].any():
        mask, returns, lengths, seconds = raw[1]
        episodes = mask[rows], returns[rows], lengths[rows], seconds[rows]
    return (events, episodes) if events or episodes is not None else None


def _join_infos(layout: Layout, batches: Sequence[Batch]) -> RawInfos | ColumnInfos | None:
    columns = [batch.infos for batch in batches if isinstance(batch.infos, ColumnInfos)]
    have_same_keys = all(infos.columns.keys() == columns[0].columns.keys() for infos in columns)
    if columns and len(columns) == len(batches) and have_same_keys:
        return _join_columns(layout, columns, [len(batch.slots) for batch in batches])
    infos_and_rows = [(batch.raw_infos, len(batch.slots)) for batch in batches]
    if all(raw is None for raw, _ in infos_and_rows):
        return None
    events: list[Event] = []
    first = 0
    for raw, rows in infos_and_rows:
        if raw is not None:
            events += [(first + row, info) for row, info in raw[0]]
        first += rows
    return events, _join_episodes([(raw and raw[1], rows) for raw, rows in infos_and_rows])


def _join_columns(
    layout: Layout, parts: Sequence[ColumnInfos], counts: Sequence[int]
) -> ColumnInfos:
    columns = {
        key: np.concatenate([part.columns[key] for part in parts]) for key in parts[0].columns
    }
    episodes = _join_episodes(
        [(part.episodes, rows) for part, rows in zip(parts, counts, strict=True)]
    )
    firsts = np.cumsum([0, *counts])
    all_finals = [
        part.finals._replace(rows=part.finals.rows + first)
        for part, first in zip(parts, firsts, strict=False)
        if part.finals is not None
    ]
    if not all_finals:
        return ColumnInfos(columns, episodes, None)
    observations = join_leaves([batch_leaves(layout, finals.observations) for finals in all_finals])
    finals = Finals(
        np.concatenate([finals.rows for finals in all_finals]),
        batch_of_leaves(layout, *observations),
        {
            key: np.concatenate([finals.columns[key] for finals in all_finals])
            for key in all_finals[0].columns
        },
    )
    return ColumnInfos(columns, episodes, finals)


def _join_episodes(parts: Sequence[tuple[Episodes | None, int]]) -> Episodes | None:
    if all(episodes is None for episodes, _ in parts):
        return None
    filled = [_no_episodes(rows) if episodes is None else episodes for episodes, rows in parts]
    columns = [np.concatenate(column) for column in zip(*filled, strict=True)]
    return columns[0], columns[1], columns[2], columns[3]


def _no_episodes(rows: int) -> tuple[npt.NDArray[Any], ...]:
    return np.zeros(rows, np.bool_), np.zeros(rows), np.zeros(rows, np.int64), np.zeros(rows)
