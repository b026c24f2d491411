"""Conversion of a team batch to results of all agents, or of one agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from gymnasium.vector.utils import batch_space, iterate

from shoal._spaces import Layout
from shoal._spaces.leaves import Leaves, batch_leaves, batch_of_leaves, take_rows
from shoal._types import (
    FINAL_KEYS,
    ColumnInfos,
    Episodes,
    Finals,
    RawInfos,
    Results,
    as_events,
)
from shoal.pettingzoo._teams import TeamBatch, Teams

__all__ = ["View", "alive_infos", "emptied", "results_of", "view_of_agent", "view_of_rows"]

ALIVE_INFO = "alive"
"""Key of the info with the mask of living agents. It overrides an environment's own info."""

Arrays = npt.NDArray[Any]


class View(NamedTuple):
    """Results with one agent per row.

    ``last`` has the final observations of rows that already have the next episode.
    """

    observations: Any
    rewards: Arrays
    terminated: Arrays
    truncated: Arrays
    alive: Arrays
    columns: dict[str, Arrays]
    infos: list[tuple[int, bool, dict[str, Any]]]
    """(row, whether the info belongs to the ended episode, info)"""
    episodes: Episodes | None
    last: Finals | None


def view_of_rows(teams: Teams, batch: TeamBatch, episodes: Episodes | None) -> View:
    """Return the view of all agents of all environments, agents innermost."""
    count = len(teams.members.agents)
    infos = [
        (info.row * count + place, info.is_last, info.info)
        for info in batch.infos
        for place in (range(count) if info.place is None else [info.place])
    ]

    def rows_of(rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        return (rows[:, None] * count + np.arange(count)).ravel()

    return _view(batch, episodes, infos, teams.in_rows, _in_rows, rows_of)


def view_of_agent(teams: Teams, batch: TeamBatch, episodes: Episodes | None, place: int) -> View:
    """Return the view of one agent, with one row per environment."""
    infos = [
        (info.row, info.is_last, info.info) for info in batch.infos if info.place in (None, place)
    ]

    def observations_of(observations: Any) -> Any:
        return teams.of_agent(observations, place)

    def column_of(column: Arrays) -> Arrays:
        return np.ascontiguousarray(column[:, place])

    return _view(batch, episodes, infos, observations_of, column_of, lambda rows: rows)


def _view(
    batch: TeamBatch,
    episodes: Episodes | None,
    infos: list[tuple[int, bool, dict[str, Any]]],
    observations_of: Callable[[Any], Any],
    column_of: Callable[[Arrays], Arrays],
    rows_of: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]],
) -> View:
    """Create a view with functions that select from observations, columns and row numbers."""
    finals = None
    if batch.last is not None:
        rows, observations, columns = batch.last
        finals = Finals(
            rows_of(rows), observations_of(observations), _select_columns(columns, column_of)
        )
    if episodes is not None:
        mask, returns, lengths, seconds = episodes
        episodes = column_of(mask), column_of(returns), column_of(lengths), column_of(seconds)
        episodes = episodes if episodes[0].any() else None
    return View(
        observations_of(batch.observations),
        column_of(batch.rewards),
        column_of(batch.terminated),
        column_of(batch.truncated),
        column_of(batch.alive),
        _select_columns(batch.columns, column_of),
        infos,
        episodes,
        finals,
    )


def _select_columns(
    columns: dict[str, Arrays], column_of: Callable[[Arrays], Arrays]
) -> dict[str, Arrays]:
    return {key: column_of(column) for key, column in columns.items()}


def results_of(view: View, layout: Layout, empty: Leaves, *, moves_on: bool) -> Results:
    """Convert a view to a pool's results.

    Args:
        view: The view.
        layout: The layout of an agent's observation.
        empty: The leaves of a batch with one empty observation.
        moves_on: Whether a row whose episode has ended must have the next observation (SAME_STEP):
            that of the next episode, or an empty one while other agents are alive.
    """
    observations, finals = view.observations, None
    ended = np.flatnonzero(view.terminated | view.truncated)
    if moves_on and ended.size:
        finals = _finals(view, layout, ended)
        not_alive = ended[~view.alive[ended]]
        observations = emptied(observations, layout, empty, not_alive)
    columns = {**view.columns, ALIVE_INFO: view.alive}
    column_infos = ColumnInfos(columns, view.episodes, finals)
    # Columns cannot hold objects, nor infos that only some rows have.
    needs_events = view.infos or (finals is not None and layout.objects)
    infos = _with_infos(column_infos, view, layout) if needs_events else column_infos
    return observations, view.rewards, view.terminated, view.truncated, infos


def _finals(view: View, layout: Layout, ended: npt.NDArray[np.int64]) -> Finals:
    """Return the final observations and infos of these rows."""
    arrays, objects = take_rows(batch_leaves(layout, view.observations), ended)
    columns = {key: column[ended] for key, column in view.columns.items()}
    if view.last is not None:
        sources = np.full(len(view.alive), -1)
        sources[view.last.rows] = np.arange(len(view.last.rows))
        source = sources[ended]
        target = np.flatnonzero(source >= 0)
        source = source[target]
        last_arrays, last_objects = batch_leaves(layout, view.last.observations)
        for array, last_array in zip(arrays, last_arrays, strict=True):
            array[target] = last_array[source]
        for items, last_items in zip(objects, last_objects, strict=True):
            for row, last_row in zip(target.tolist(), source.tolist(), strict=True):
                items[row] = last_items[last_row]
        for key, column in columns.items():
            column[target] = view.last.columns[key][source]
    return Finals(ended, batch_of_leaves(layout, arrays, objects), columns)


def emptied(observations: Any, layout: Layout, empty: Leaves, rows: npt.NDArray[np.int64]) -> Any:
    """Replace these rows by the empty observation. Arrays are modified in place."""
    if not rows.size:
        return observations
    arrays, objects = batch_leaves(layout, observations)
    for array, empty_array in zip(arrays, empty[0], strict=True):
        array[rows] = empty_array[0]
    for items, empty_items in zip(objects, empty[1], strict=True):
        for row in rows.tolist():
            items[row] = empty_items[0]
    return batch_of_leaves(layout, arrays, objects)


def alive_infos(alive: npt.NDArray[np.bool_]) -> dict[str, Arrays]:
    """Return the info with the living agents, and its mask."""
    return {ALIVE_INFO: alive, f"_{ALIVE_INFO}": np.ones(len(alive), np.bool_)}


def _with_infos(column_infos: ColumnInfos, view: View, layout: Layout) -> RawInfos:
    """Merge the infos of all rows with those of single rows."""
    final_observations: list[Any] = []
    finals = column_infos.finals
    if finals is not None:
        count = len(finals.rows)
        final_observations = list(iterate(batch_space(layout.space, count), finals.observations))
        finals = finals._replace(observations=np.arange(count))
        column_infos = column_infos._replace(finals=finals)
    raw = as_events(column_infos, len(view.alive))
    assert raw is not None
    events, episodes = raw
    for _, info in events:
        if info.keys() == FINAL_KEYS:
            info["final_obs"] = final_observations[info["final_obs"]]
    final_infos = {row: info["final_info"] for row, info in events if info.keys() == FINAL_KEYS}
    step_infos = {row: info for row, info in events if info.keys() != FINAL_KEYS}
    reset_rows = set() if view.last is None else set(view.last.rows.tolist())
    for row, is_last, info in view.infos:
        is_final = is_last or (row in final_infos and row not in reset_rows)
        target = (final_infos if is_final else step_infos).get(row, {})
        for key, value in info.items():
            target.setdefault(key, value)
    return events, episodes


def _in_rows(column: Arrays) -> Arrays:
    return column.reshape(-1, *column.shape[2:])
