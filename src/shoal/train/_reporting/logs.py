"""The logs of a run: CSV files that are appended to, and truncated when a run is resumed."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from shoal.train._records import EpisodeRecord, EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.columns import check_header, columns_of, encode_rows, header_of

__all__ = ["CsvLog", "RunLogs"]

Record = TypeVar("Record", bound=NamedTuple)

_SECONDS_BETWEEN_WRITES = 1.0
_BLOCK = 1 << 16


class CsvLog(Generic[Record]):
    """A CSV file with one record per line.

    Records are buffered for up to a second before they are written. An existing file is appended
    to, after an incomplete last line has been removed.

    Args:
        path: The file; missing parent folders are created.
        record_type: The type of the records, whose fields are the columns.

    Raises:
        ValueError: The file exists and has other columns.

    Example:
        >>> import tempfile
        >>> from shoal.train._reporting import read_records
        >>> path = Path(tempfile.mkdtemp(), "ratings.csv")
        >>> log = CsvLog(path, RatingRecord)
        >>> start = log.position()
        >>> log.append([RatingRecord(100, "main", "main", 18.5, 25.0, 2.1666, 12)])
        >>> log.close()
        >>> read_records(path, RatingRecord)[0].mean
        25.0
    """

    def __init__(self, path: Path, record_type: type[Record]) -> None:
        self.path = path
        self.record_type = record_type
        self._writers = [column.write for column in columns_of(record_type).values()]
        self._pending: list[list[str]] = []
        self._last_write = time.monotonic()
        self._header = header_of(record_type)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered: a forked process must not write our data a second time.
        self._file = path.open("a+b", buffering=0)
        try:
            self._prepare()
        except BaseException:
            self._file.close()
            raise

    def append(self, records: Sequence[Record]) -> None:
        """Append records.

        Raises:
            TypeError: A record has another type. No record has been appended.
        """
        rows = []
        for record in records:
            if not isinstance(record, self.record_type):
                raise TypeError(
                    f"{self.path} is a log of {self.record_type.__name__}, got {record!r}"
                )
            rows.append([write(value) for write, value in zip(self._writers, record, strict=True)])
        self._pending += rows
        if time.monotonic() - self._last_write >= _SECONDS_BETWEEN_WRITES:
            self._write()

    def position(self) -> int:
        """Write all buffered records, and return the size of the file in bytes."""
        self._write()
        return os.fstat(self._file.fileno()).st_size

    def truncate(self, position: int) -> None:
        """Truncate the file to an earlier position.

        Raises:
            ValueError: The position is not the end of a line of the file. Nothing has been removed.
        """
        size = self.position()
        if not len(self._header) <= position <= size:
            raise ValueError(
                f"{self.path} cannot be truncated to {position} bytes: expected a size from "
                f"{len(self._header)} (the header) to {size}"
            )
        self._file.seek(position - 1)
        if self._file.read(1) != b"\n":
            raise ValueError(
                f"{self.path} cannot be truncated to {position} bytes: expected the end of a line"
            )
        self._file.truncate(position)

    def close(self) -> None:
        """Write all buffered records and close the file. May be called more than once."""
        if not self._file.closed:
            try:
                self._write()
            finally:
                self._file.close()

    def _prepare(self) -> None:
        self._file.seek(0)
        header = self._file.readline()
        if header.endswith(b"\n") or not self._header.startswith(header):
            check_header(self.path, header, self.record_type)
        end = _end_of_lines(self._file)
        self._file.truncate(end)
        if end == 0:
            self._put(self._header)

    def _write(self) -> None:
        self._last_write = time.monotonic()
        # Cleared first: an interrupt may lose rows, but never duplicates them.
        rows, self._pending = self._pending, []
        if rows:
            self._put(encode_rows(rows))

    def _put(self, text: bytes) -> None:
        start = os.fstat(self._file.fileno()).st_size
        remaining = memoryview(text)
        try:
            while remaining:
                remaining = remaining[self._file.write(remaining) :]
        except BaseException:  # for example a full disk, or Ctrl-C
            self._file.truncate(start)
            raise


class RunLogs:
    """The four logs of a run, in its folder ``logs``.

    Args:
        folder: The folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        logs = folder / "logs"
        with ExitStack() as stack:
            self.episodes = CsvLog(logs / "episodes.csv", EpisodeRecord)
            stack.enter_context(closing(self.episodes))
            self.progress = CsvLog(logs / "progress.csv", ProgressRecord)
            stack.enter_context(closing(self.progress))
            self.evaluations = CsvLog(logs / "evaluations.csv", EvaluationRecord)
            stack.enter_context(closing(self.evaluations))
            self.ratings = CsvLog(logs / "ratings.csv", RatingRecord)
            stack.enter_context(closing(self.ratings))
            self._stack = stack.pop_all()

    def positions(self) -> dict[str, int]:
        """Return the size of each log, by name; a checkpoint keeps it for ``truncate``."""
        return {name: log.position() for name, log in self._by_name().items()}

    def truncate(self, positions: Mapping[str, int]) -> None:
        """Truncate logs to positions that ``positions`` returned earlier.

        Args:
            positions: The position of each log to truncate, by name.

        Raises:
            ValueError: A name is unknown, or a position is invalid.
        """
        logs = self._by_name()
        for name in positions:
            if name not in logs:
                raise ValueError(f"unknown log {name!r}: expected one of {', '.join(logs)}")
        for name, position in positions.items():
            logs[name].truncate(position)

    def close(self) -> None:
        """Write all buffered records and close the files. May be called more than once."""
        self._stack.close()

    def _by_name(self) -> dict[str, CsvLog[Any]]:
        logs = (self.episodes, self.progress, self.evaluations, self.ratings)
        return {log.path.stem: log for log in logs}


def _end_of_lines(file: io.FileIO) -> int:
    """Return the position after the last complete line."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0
