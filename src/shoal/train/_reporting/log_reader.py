"""Read the logs of a run."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeVar

from shoal.train._records import EpisodeRecord, EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.columns import check_header, columns_of

__all__ = ["RunRecords", "read_records", "read_run"]

Record = TypeVar("Record", bound=NamedTuple)


def read_records(path: Path, record_type: type[Record], at_most: int | None = None) -> list[Record]:
    """Read the records of a log.

    An incomplete last line, as a killed run leaves it, is ignored.

    Args:
        path: The file.
        record_type: The type of the records.
        at_most: The maximum number of records. Of a longer log, every second, fourth, ... record is
            read.

    Raises:
        ValueError: The file has other columns, or an invalid line.
    """
    if at_most is not None and at_most < 1:
        raise ValueError(f"at_most must be a positive integer or None, got {at_most}")
    readers = [column.read for column in columns_of(record_type).values()]
    records: list[Record] = []
    with path.open("rb") as file:
        header = file.readline()
        if not header.endswith(b"\n"):
            return records
        check_header(path, header, record_type)
        lines: Iterable[tuple[int, bytes]] = _numbered(file)
        for number, line in lines if at_most is None else _thinned(lines, at_most):
            try:
                cells = next(csv.reader([line.decode("utf-8", "surrogatepass")]))
                if len(cells) != len(readers):
                    raise ValueError(f"it has {len(cells)} columns, expected {len(readers)}")
                values = [read(cell) for read, cell in zip(readers, cells, strict=True)]
            except (ValueError, csv.Error) as error:
                raise ValueError(
                    f"{path}, line {number} is not a valid {record_type.__name__}: {error}"
                ) from error
            records.append(record_type._make(values))
    return records


class RunRecords(NamedTuple):
    """The records in the logs of a run."""

    episodes: list[EpisodeRecord]
    progress: list[ProgressRecord]
    evaluations: list[EvaluationRecord]
    ratings: list[RatingRecord]


def read_run(folder: Path, episodes_at_most: int = 50_000) -> RunRecords:
    """Read the logs of a run; a missing log has no records.

    Args:
        folder: The folder of the run.
        episodes_at_most: The maximum number of episodes, as ``at_most`` of ``read_records``.
    """

    def read(name: str, record_type: type[Record], at_most: int | None = None) -> list[Record]:
        path = folder / "logs" / f"{name}.csv"
        return read_records(path, record_type, at_most) if path.exists() else []

    return RunRecords(
        episodes=read("episodes", EpisodeRecord, episodes_at_most),
        progress=read("progress", ProgressRecord),
        evaluations=read("evaluations", EvaluationRecord),
        ratings=read("ratings", RatingRecord),
    )


def _numbered(file: io.BufferedReader) -> Iterator[tuple[int, bytes]]:
    for number, line in enumerate(file, start=2):
        if line.endswith(b"\n"):
            yield number, line[:-1]


def _thinned(lines: Iterable[tuple[int, bytes]], at_most: int) -> list[tuple[int, bytes]]:
    kept: list[tuple[int, bytes]] = []
    stride = 1
    for count, line in enumerate(lines):
        if count % stride == 0:
            kept.append(line)
            if len(kept) > at_most:
                del kept[1::2]
                stride *= 2
    return kept
