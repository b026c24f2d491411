"""Infos, and values of no fixed shape, as the part of a batch's message that is not tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal._types import ColumnInfos, Finals, RawInfos
from shoal.errors import ProtocolError
from shoal.remote._value_codec import pack_values, unpack_values

__all__ = ["pack_told", "unpack_told"]

Objects = list[list[Any]]
Infos = RawInfos | ColumnInfos | None


def pack_told(objects: Objects, infos: Infos) -> bytes:
    """What a batch has besides tensors; nothing for most of them."""
    if infos is None and not objects:
        return b""
    if isinstance(infos, ColumnInfos):
        finals = None if infos.finals is None else tuple(infos.finals)
        return pack_values([objects, "columns", infos.columns, infos.episodes, finals])
    events, episodes = infos or (None, None)
    return pack_values([objects, "events", events, episodes])


def unpack_told(data: bytes | bytearray, leaves: int, rows: int) -> tuple[Objects, Infos]:
    """The values of so many parts of no fixed shape, and the infos."""
    if not data and not leaves:
        return [], None
    told = unpack_values(data)
    try:
        objects, form, *rest = told
        fits = len(objects) == leaves and all(len(items) == rows for items in objects)
        infos = _FORMS[form](rows, *rest) if fits else None
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise ProtocolError(f"infos could not be read: {error!r}") from error
    if not fits:
        raise ProtocolError(f"there are not {leaves} times {rows} values of no fixed shape")
    return objects, infos


def _events(rows: int, events: Any, episodes: Any) -> Infos:
    if events is None:
        return None
    checked = [(int(row), dict(info)) for row, info in events]
    if any(not 0 <= row < rows for row, _ in checked):
        raise ValueError(f"an info is of a row beyond {rows}")
    return checked, _episodes(rows, episodes)


def _columns(rows: int, columns: Any, episodes: Any, finals: Any) -> Infos:
    if any(len(column) != rows for column in columns.values()):
        raise ValueError(f"a column of infos has not {rows} rows")
    return ColumnInfos(
        dict(columns), _episodes(rows, episodes), None if finals is None else Finals(*finals)
    )


def _episodes(rows: int, episodes: Any) -> Any:
    if episodes is not None and [len(column) for column in episodes] != [rows] * 4:
        raise ValueError(f"episodes are not four columns of {rows} rows")
    return episodes


_FORMS: dict[str, Callable[..., Infos]] = {"events": _events, "columns": _columns}
