"""The meta part of BATCH messages: infos, and the parts of observations without fixed shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal._types import ColumnInfos, Finals, RawInfos
from shoal.errors import ProtocolError
from shoal.remote._value_codec import pack_values, unpack_values

__all__ = ["pack_batch_meta", "unpack_batch_meta"]

Objects = list[list[Any]]
Infos = RawInfos | ColumnInfos | None


def pack_batch_meta(objects: Objects, infos: Infos) -> bytes:
    """Encode the objects and infos of a batch; empty for most batches."""
    if infos is None and not objects:
        return b""
    if isinstance(infos, ColumnInfos):
        finals = None if infos.finals is None else tuple(infos.finals)
        return pack_values([objects, "columns", infos.columns, infos.episodes, finals])
    events, episodes = infos or (None, None)
    return pack_values([objects, "events", events, episodes])


def unpack_batch_meta(data: bytes | bytearray, leaves: int, rows: int) -> tuple[Objects, Infos]:
    """Decode the objects and infos of a batch.

    Args:
        data: The encoded meta part.
        leaves: Number of observation parts without fixed shape.
        rows: Number of slots in the batch.

    Raises:
        ProtocolError: The data is invalid.
    """
    if not data and not leaves:
        return [], None
    meta = unpack_values(data)
    try:
        objects, form, *rest = meta
        fits = len(objects) == leaves and all(len(items) == rows for items in objects)
        infos = _FORMS[form](rows, *rest) if fits else None
    except (TypeError, ValueError, LookupError, AttributeError, OverflowError) as error:
        raise ProtocolError(f"invalid infos: {error!r}") from error
    if not fits:
        raise ProtocolError(f"expected {leaves} times {rows} values without fixed shape")
    return objects, infos


def _events(rows: int, events: Any, episodes: Any) -> Infos:
    if events is None:
        return None
    checked = [(int(row), dict(info)) for row, info in events]
    if any(not 0 <= row < rows for row, _ in checked):
        raise ValueError(f"the row of an info is not in [0, {rows})")
    return checked, _episodes(rows, episodes)


def _columns(rows: int, columns: Any, episodes: Any, finals: Any) -> Infos:
    if any(len(column) != rows for column in columns.values()):
        raise ValueError(f"a column of infos does not have {rows} rows")
    return ColumnInfos(
        dict(columns), _episodes(rows, episodes), None if finals is None else Finals(*finals)
    )


def _episodes(rows: int, episodes: Any) -> Any:
    if episodes is not None and [len(column) for column in episodes] != [rows] * 4:
        raise ValueError(f"expected four episode columns of {rows} rows")
    return episodes


_FORMS: dict[str, Callable[..., Infos]] = {"events": _events, "columns": _columns}
