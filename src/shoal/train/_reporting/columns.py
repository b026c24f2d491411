"""The CSV format of logs: convert fields to text and back."""

from __future__ import annotations

import csv
import io
import json
import operator
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

__all__ = ["Column", "check_header", "columns_of", "encode_rows", "header_of"]


class Column(NamedTuple):
    """The conversions of one field to text and back."""

    write: Callable[[Any], str]
    read: Callable[[str], Any]


def columns_of(record_type: type[NamedTuple]) -> dict[str, Column]:
    """Return the column of each field, in the order of the fields.

    Example:
        >>> from shoal.train._records import EpisodeRecord
        >>> columns = columns_of(EpisodeRecord)
        >>> columns["winner"].write(None), columns["winner"].read("-1")
        ('', -1)
    """
    columns = {}
    hints = get_type_hints(record_type)
    for name in record_type._fields:
        if hints[name] not in _COLUMNS:
            raise TypeError(
                f"{record_type.__name__}.{name} is {hints[name]}, which logs do not support: "
                f"expected one of {', '.join(map(_name, _COLUMNS))}"
            )
        columns[name] = _COLUMNS[hints[name]]
    return columns


def encode_rows(rows: Iterable[Sequence[str]]) -> bytes:
    """Return rows of cells as lines of a CSV file."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


def header_of(record_type: type[NamedTuple]) -> bytes:
    """Return the header line of a log of these records."""
    return encode_rows([record_type._fields])


def check_header(path: Path, header: bytes, record_type: type[NamedTuple]) -> None:
    """Check the header line of a log of these records.

    Raises:
        ValueError: The header has other columns.
    """
    expected = header_of(record_type)
    if header != expected:
        actual = header.decode("utf-8", "replace").strip()
        raise ValueError(f"{path} has the columns {actual}, expected {expected.decode().strip()}")


# Line breaks are escaped: a record is one line, so an unterminated line is an incomplete record.
_UNESCAPED = {"\\\\": "\\", "\\n": "\n", "\\r": "\r"}


def _write_text(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")


def _read_text(text: str) -> str:
    return re.sub(r"\\[\\nr]", lambda match: _UNESCAPED[match[0]], text)


def _write_int(number: Any) -> str:
    return int.__repr__(operator.index(number))


def _write_float(number: Any) -> str:
    return repr(float(number))


def _write_dict(numbers: dict[str, float]) -> str:
    return json.dumps(numbers, default=float)


def _read_dict(text: str) -> dict[str, float]:
    numbers = json.loads(text)
    if not isinstance(numbers, dict):
        raise ValueError("not a JSON object")
    return numbers


def _or_none(column: Column) -> Column:
    write, read = column
    return Column(
        lambda value: "" if value is None else write(value),
        lambda text: None if text == "" else read(text),
    )


_INT, _FLOAT = Column(_write_int, int), Column(_write_float, float)
_COLUMNS: dict[Any, Column] = {
    str: Column(_write_text, _read_text),
    int: _INT,
    float: _FLOAT,
    int | None: _or_none(_INT),
    float | None: _or_none(_FLOAT),
    dict[str, float]: Column(_write_dict, _read_dict),
}


def _name(hint: Any) -> str:
    return hint.__name__ if type(hint) is type else str(hint)
