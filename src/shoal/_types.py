"""Types that Python and the native core exchange."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = [
    "CRASHED",
    "EPISODE",
    "FINAL_KEYS",
    "ColumnInfos",
    "Episode",
    "Episodes",
    "Event",
    "Finals",
    "RawInfos",
    "Results",
    "Slots",
    "StepEvents",
    "Work",
    "as_events",
    "row_of",
]

Slots = npt.NDArray[np.int64] | None
"""Slot numbers, or None for all of them."""

Work = tuple[npt.NDArray[np.int64], Sequence[int | None] | None, Any]
"""(slots, seeds, options): a step where seeds is None, else a reset."""

Event = tuple[int, dict[str, Any]]
"""A row of the batch, and an info of its slot."""

Episodes = tuple[
    npt.NDArray[np.bool_], npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.float64]
]
"""The mask of rows that ended an episode, and its return, length and seconds in each row."""

Episode = tuple[int, float, int, float]
"""An episode that ended: its slot, return, length and seconds."""

StepEvents = tuple[list[Event] | None, list[Episode] | None, list[tuple[int, BaseException]] | None]
"""Infos, episodes and errors of slots, each with its slot; None if there are none."""

EPISODE = "episode"
"""The key of the info that reports return, length and seconds of an episode that ended."""

CRASHED = "crashed"
"""The key of the info that reports that a slot lost its environment and got a new one."""

FINAL_KEYS = {"final_obs", "final_info"}
"""The keys of the event that reports the end of an episode in the same-step mode."""

RawInfos = tuple[list[Event], Episodes | None]
"""Infos as pools return them; a frontend converts them to the form of its interface."""


class Finals(NamedTuple):
    """Observations and infos at the ends of episodes, before their rows were reset."""

    rows: npt.NDArray[np.int64]
    observations: Any
    columns: dict[str, npt.NDArray[Any]]


class ColumnInfos(NamedTuple):
    """Infos of a pool whose environments all have the same keys: a column for each key."""

    columns: dict[str, npt.NDArray[Any]]
    episodes: Episodes | None
    finals: Finals | None


def row_of(batch: Any, row: int) -> Any:
    """Return one row of a batch, as the environment of that row would return it.

    >>> row_of((np.array([3, 4]), {"speed": np.array([[0.5], [1.5]])}), 1)
    (4, {'speed': array([1.5])})
    """
    if isinstance(batch, dict):
        return {key: row_of(part, row) for key, part in batch.items()}
    if isinstance(batch, tuple):
        return tuple(row_of(part, row) for part in batch)
    value = batch[row]
    if batch.ndim > 1:
        return value.copy()
    # Scalars of these dtypes become Python scalars.
    return value.item() if batch.dtype in (np.float64, np.int64, np.bool_) else value


def as_events(infos: RawInfos | ColumnInfos | None, rows: int) -> RawInfos | None:
    """Return infos as a list of events, for frontends that report each slot separately."""
    if not isinstance(infos, ColumnInfos):
        return infos
    finals = infos.finals
    endings = {} if finals is None else {int(row): k for k, row in enumerate(finals.rows)}
    events: list[Event] = []
    for row in range(rows) if infos.columns else sorted(endings):
        if finals is not None and row in endings:
            index = endings[row]
            final_obs = row_of(finals.observations, index)
            final_info = row_of(finals.columns, index)
            events.append((row, {"final_obs": final_obs, "final_info": final_info}))
        if infos.columns:
            events.append((row, row_of(infos.columns, row)))
    return events, infos.episodes


Results = tuple[
    Any,
    npt.NDArray[np.float64],
    npt.NDArray[np.bool_],
    npt.NDArray[np.bool_],
    RawInfos | ColumnInfos | None,
]
"""Observations, rewards, terminated, truncated and raw infos, a row for each slot."""
