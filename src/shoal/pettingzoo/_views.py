"""What a frontend shows of a batch: rows of environments times agents, or those of one agent."""

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

__all__ = ["View", "emptied", "results_of", "told_alive", "view_of_agent", "view_of_rows"]

ALIVE_INFO = "alive"
"""The info by which every row tells whether its agent can act next.

An info of that name which an environment has itself gives way to it.
"""

Arrays = npt.NDArray[Any]


class View(NamedTuple):
    """Rows with one agent each; ``last`` is how episodes ended in rows that show the next one."""

    observations: Any
    rewards: Arrays
    terminated: Arrays
    truncated: Arrays
    alive: Arrays
    columns: dict[str, Arrays]
    infos: list[tuple[int, bool, dict[str, Any]]]
    """(row, whether it belongs to what has ended, info)"""
    episodes: Episodes | None
    last: Finals | None


def view_of_rows(teams: Teams, batch: TeamBatch, episodes: Episodes | None) -> View:
    """All agents of all environments, the agents innermost."""
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
    """One agent, with a row for each environment."""
    infos = [
        (info.row, info.is_last, info.info) for info in batch.infos if info.place in (None, place)
    ]

    def shown(observations: Any) -> Any:
        return teams.of_agent(observations, place)

    def own(column: Arrays) -> Arrays:
        return np.ascontiguousarray(column[:, place])

    return _view(batch, episodes, infos, shown, own, lambda rows: rows)


def _view(
    batch: TeamBatch,
    episodes: Episodes | None,
    infos: list[tuple[int, bool, dict[str, Any]]],
    shown: Callable[[Any], Any],
    own: Callable[[Arrays], Arrays],
    rows_of: Callable[[npt.NDArray[np.int64]], npt.NDArray[np.int64]],
) -> View:
    """What is ``own`` of all that a batch has by environment and agent."""
    finals = None
    if batch.last is not None:
        rows, observations, columns = batch.last
        finals = Finals(rows_of(rows), shown(observations), _own_columns(columns, own))
    if episodes is not None:
        mask, returns, lengths, seconds = episodes
        episodes = own(mask), own(returns), own(lengths), own(seconds)
        episodes = episodes if episodes[0].any() else None
    return View(
        shown(batch.observations),
        own(batch.rewards),
        own(batch.terminated),
        own(batch.truncated),
        own(batch.alive),
        _own_columns(batch.columns, own),
        infos,
        episodes,
        finals,
    )


def _own_columns(columns: dict[str, Arrays], own: Callable[[Arrays], Arrays]) -> dict[str, Arrays]:
    return {key: own(column) for key, column in columns.items()}


def results_of(view: View, layout: Layout, nothing: Leaves, *, moves_on: bool) -> Results:
    """A view as a pool's results.

    Args:
        view: The view.
        layout: Of the observation of an agent.
        nothing: The leaves of a batch with one row, that of an agent which is not there.
        moves_on: Whether a row whose episode has ended already shows what comes next, which is
            nothing where its environment goes on without its agent.
    """
    observations, finals = view.observations, None
    ended = np.flatnonzero(view.terminated | view.truncated)
    if moves_on and ended.size:
        finals = _finals(view, layout, ended)
        gone = ended[~view.alive[ended]]
        observations = emptied(observations, layout, nothing, gone)
    columns = {**view.columns, ALIVE_INFO: view.alive}
    told = ColumnInfos(columns, view.episodes, finals)
    # Columns are for what has fixed shapes, and for what every row tells.
    needs_events = view.infos or (finals is not None and layout.objects)
    infos = _with_infos(told, view, layout) if needs_events else told
    return observations, view.rewards, view.terminated, view.truncated, infos


def _finals(view: View, layout: Layout, ended: npt.NDArray[np.int64]) -> Finals:
    """What was shown and told at the end of each of these rows' episodes."""
    arrays, objects = take_rows(batch_leaves(layout, view.observations), ended)
    columns = {key: column[ended] for key, column in view.columns.items()}
    if view.last is not None:
        whose = np.full(len(view.alive), -1)
        whose[view.last.rows] = np.arange(len(view.last.rows))
        source = whose[ended]
        where = np.flatnonzero(source >= 0)
        source = source[where]
        last_arrays, last_objects = batch_leaves(layout, view.last.observations)
        for array, last_array in zip(arrays, last_arrays, strict=True):
            array[where] = last_array[source]
        for items, last_items in zip(objects, last_objects, strict=True):
            for row, other in zip(where.tolist(), source.tolist(), strict=True):
                items[row] = last_items[other]
        for key, column in columns.items():
            column[where] = view.last.columns[key][source]
    return Finals(ended, batch_of_leaves(layout, arrays, objects), columns)


def emptied(observations: Any, layout: Layout, nothing: Leaves, rows: npt.NDArray[np.int64]) -> Any:
    """Observations that show nothing in these rows. Arrays are changed where they are."""
    if not rows.size:
        return observations
    arrays, objects = batch_leaves(layout, observations)
    for array, empty in zip(arrays, nothing[0], strict=True):
        array[rows] = empty[0]
    for items, empties in zip(objects, nothing[1], strict=True):
        for row in rows.tolist():
            items[row] = empties[0]
    return batch_of_leaves(layout, arrays, objects)


def told_alive(alive: npt.NDArray[np.bool_]) -> dict[str, Arrays]:
    """The info of who lives, and its mask, where it is told of all rows."""
    return {ALIVE_INFO: alive, f"_{ALIVE_INFO}": np.ones(len(alive), np.bool_)}


def _with_infos(told: ColumnInfos, view: View, layout: Layout) -> RawInfos:
    """What every row tells, together with what some of them tell besides."""
    shown: list[Any] = []
    if told.finals is not None:
        count = len(told.finals.rows)
        shown = list(iterate(batch_space(layout.space, count), told.finals.observations))
        told = told._replace(finals=told.finals._replace(observations=np.arange(count)))
    raw = as_events(told, len(view.alive))
    assert raw is not None
    events, episodes = raw
    for _, info in events:
        if info.keys() == FINAL_KEYS:
            info["final_obs"] = shown[info["final_obs"]]
    finals = {row: info["final_info"] for row, info in events if info.keys() == FINAL_KEYS}
    others = {row: info for row, info in events if info.keys() != FINAL_KEYS}
    begun_anew = set() if view.last is None else set(view.last.rows.tolist())
    for row, is_last, info in view.infos:
        belongs_to_end = is_last or (row in finals and row not in begun_anew)
        target = (finals if belongs_to_end else others).get(row, {})
        for key, value in info.items():
            target.setdefault(key, value)
    return events, episodes


def _in_rows(column: Arrays) -> Arrays:
    return column.reshape(-1, *column.shape[2:])
