"""Conversion of a pool's infos to the formats of Gymnasium's releases."""

from __future__ import annotations

import warnings
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from shoal._native import batch_infos
from shoal._types import EPISODE, FINAL_KEYS, ColumnInfos, Episodes, RawInfos, as_events, row_of

__all__ = ["InfoFormat", "format_infos", "infos_as_list"]

_OVERWRITTEN = (
    f"statistics=True would overwrite the info {EPISODE!r} of the environments: use only one of "
    "the two (is a RecordEpisodeStatistics wrapper in use?)"
)

InfoFormat = Literal["dict", "list", "pre-1.0"]
"""``"dict"``: a dict of arrays with ``_key`` masks, as in Gymnasium today. ``"list"``: a dict for
each slot. ``"pre-1.0"``: as ``"dict"``, but the end of an episode is reported in
``final_observation`` and ``final_info``, lists with an entry or None for each slot, as before
Gymnasium 1.0."""


def format_infos(raw: RawInfos | ColumnInfos | None, rows: int, info_format: InfoFormat) -> Any:
    """Convert a pool's raw infos to ``info_format``."""
    if isinstance(raw, ColumnInfos) and info_format == "dict":
        return _from_columns(raw, rows)
    raw = as_events(raw, rows)
    if raw is None:
        return [{} for _ in range(rows)] if info_format == "list" else {}
    events, episodes = raw
    if episodes is not None and any(_has_episode(info, info_format) for _, info in events):
        raise ValueError(_OVERWRITTEN)
    if info_format == "list":
        return _as_list(raw, rows)
    if info_format == "pre-1.0":
        return _as_pre_1_0(raw, rows)
    infos = batch_infos(events, rows, merge_column)
    _add_episodes(infos, episodes)
    return infos


def _add_episodes(infos: dict[str, Any], episodes: Episodes | None) -> None:
    if episodes is not None:
        mask, returns, lengths, seconds = episodes
        infos[EPISODE] = {"r": returns, "l": lengths, "t": seconds}
        infos[f"_{EPISODE}"] = mask


def _from_columns(raw: ColumnInfos, rows: int) -> dict[str, Any]:
    if raw.episodes is not None and EPISODE in raw.columns:
        raise ValueError(_OVERWRITTEN)
    current_infos = _masked(raw.columns, np.ones(rows, np.bool_))
    finals = raw.finals
    final_infos: dict[str, Any] = {}
    if finals is not None:
        mask = np.zeros(rows, np.bool_)
        mask[finals.rows] = True
        observations = np.full(rows, None, object)
        for index, row in enumerate(finals.rows.tolist()):
            observations[row] = row_of(finals.observations, index)
        columns = {}
        for key, values in finals.columns.items():
            columns[key] = np.zeros((rows, *values.shape[1:]), values.dtype)
            columns[key][finals.rows] = values
        final_infos = _masked(
            {"final_obs": observations, "final_info": _masked(columns, mask)}, mask
        )
    # As in Gymnasium, keys are in the order of their first occurrence over the slots.
    finals_first = finals is not None and finals.rows[0] == 0
    infos = final_infos | current_infos if finals_first else current_infos | final_infos
    _add_episodes(infos, raw.episodes)
    return infos


def _masked(columns: dict[str, Any], mask: npt.NDArray[np.bool_]) -> dict[str, Any]:
    """Return the columns, each followed by a copy of the mask."""
    return {
        name: value
        for key in columns
        for name, value in ((key, columns[key]), (f"_{key}", mask.copy()))
    }


def _has_episode(info: dict[str, Any], info_format: InfoFormat) -> bool:
    if info_format == "pre-1.0" and info.keys() == FINAL_KEYS:
        info = info["final_info"]
    return EPISODE in info


def _episode_of(raw: RawInfos, row: int) -> dict[str, Any] | None:
    episodes = raw[1]
    if episodes is None or not episodes[0][row]:
        return None
    _, returns, lengths, seconds = episodes
    return {"r": returns[row], "l": lengths[row], "t": seconds[row]}


def _as_list(raw: RawInfos, rows: int) -> list[dict[str, Any]]:
    infos: list[dict[str, Any]] = [{} for _ in range(rows)]
    for row, info in raw[0]:
        infos[row].update(info)
    for row, info in enumerate(infos):
        if (episode := _episode_of(raw, row)) is not None:
            info[EPISODE] = episode
    return infos


def _as_pre_1_0(raw: RawInfos, rows: int) -> dict[str, Any]:
    current = []
    finals: dict[int, dict[str, Any]] = {}
    for row, info in raw[0]:
        if info.keys() == FINAL_KEYS:
            finals[row] = info
        else:
            current.append((row, info))
    infos = batch_infos(current, rows, merge_column)
    if finals:
        for row, info in finals.items():
            if (episode := _episode_of(raw, row)) is not None:
                info["final_info"][EPISODE] = episode
        for name, key in (("final_observation", "final_obs"), ("final_info", "final_info")):
            infos[name] = [finals[row][key] if row in finals else None for row in range(rows)]
            infos[f"_{name}"] = np.array([row in finals for row in range(rows)])
    return infos


def infos_as_list(infos: Any, num_envs: int) -> list[dict[str, Any]]:
    """Convert infos from a dict of columns with masks to a list with a dict for each slot.

    >>> infos_as_list({"speed": np.array([0.5, 0.0]), "_speed": np.array([True, False])}, 2)
    [{'speed': np.float64(0.5)}, {}]
    """
    if isinstance(infos, list):
        return infos
    listed: list[dict[str, Any]] = [{} for _ in range(num_envs)]
    for key, column in infos.items():
        if key.startswith("_") and key[1:] in infos:
            continue  # the mask of another key
        values = infos_as_list(column, num_envs) if isinstance(column, dict) else column
        if len(values) != num_envs:
            raise ValueError(f"info {key!r} has {len(values)} rows, expected {num_envs}")
        mask = infos.get(f"_{key}")
        for slot, value in enumerate(values):
            if mask is None or mask[slot]:
                listed[slot][key] = value
    return listed


def merge_column(rows: int, pairs: list[tuple[int, Any]]) -> npt.NDArray[Any]:
    """Make a lossless column of values of different types.

    Numbers, and arrays of one shape, are promoted to a common dtype that represents every value
    exactly. If there is none, the column is an array of objects, with None where a slot has no
    value.

    >>> merge_column(3, [(0, 1), (2, 0.5)])
    array([1. , 0. , 0.5])
    >>> merge_column(3, [(0, 1), (2, "lost")])
    array([1, None, 'lost'], dtype=object)
    """
    promoted = _promote([value for _, value in pairs])
    if promoted is None:
        column = np.full(rows, None, object)
        for row, value in pairs:
            column[row] = value
        return column
    column = np.zeros((rows, *promoted[0].shape), promoted[0].dtype)
    for (row, _), array in zip(pairs, promoted, strict=True):
        column[row] = array
    return column


def _promote(values: list[Any]) -> list[npt.NDArray[Any]] | None:
    """Return the values as arrays of one dtype, or None if no dtype represents all of them."""
    if not all(map(_is_numeric, values)) or isinstance(values[0], np.bool_):
        return None
    arrays = [np.asarray(value) for value in values]
    if any(array.shape != arrays[0].shape or array.dtype.kind in "OV" for array in arrays):
        return None
    dtypes = [array.dtype for array in arrays]
    try:
        candidates = [np.result_type(*dtypes), *dtypes]
    except TypeError:
        return None
    for dtype in candidates:
        with warnings.catch_warnings():
            # The comparison below detects lossy casts.
            warnings.simplefilter("ignore")
            promoted = [array.astype(dtype) for array in arrays]
        if all(_same(*pair) for pair in zip(arrays, promoted, strict=True)):
            return promoted
    return None


def _is_numeric(value: Any) -> bool:
    # Exact types, as in Gymnasium, since subclasses such as IntEnum would lose their type.
    return type(value) in (bool, int, float) or isinstance(value, np.number | np.bool_ | np.ndarray)


def _same(before: npt.NDArray[Any], after: npt.NDArray[Any]) -> bool:
    """Whether a cast has kept every value. Python numbers are compared exactly."""
    pairs = zip(before.ravel().tolist(), after.ravel().tolist(), strict=True)
    return all(one == other or (one != one and other != other) for one, other in pairs)
