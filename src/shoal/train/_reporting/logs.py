"""The logs of a run: CSV files that can be appended to cheaply, and cut back."""

from __future__ import annotations

import io
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from shoal.train._records import EpisodeRecord, EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.columns import check_header, columns_of, encoded, header_of

__all__ = ["CsvLog", "RunLogs"]

Record = TypeVar("Record", bound=NamedTuple)

_SECONDS_BETWEEN_WRITES = 1.0
_BLOCK = 1 << 16


class CsvLog(Generic[Record]):
    """A CSV file of records, one on each line.

    What is appended is kept for up to a second before it is written. A file that is there already
    is appended to; a line that was not written to its end is removed from it first.

    Args:
        path: The file; folders on the way to it are made.
        record_type: What its lines are. The fields are the columns.

    Raises:
        ValueError: The file is there and has other columns.

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
        self._written = time.monotonic()
        self._header = header_of(record_type)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Unbuffered, so that a forked process has nothing of ours to write a second time.
        self._file = path.open("a+b", buffering=0)
        try:
            self._begin()
        except BaseException:
            self._file.close()
            raise

    def append(self, records: Sequence[Record]) -> None:
        """Add records at the end."""
        rows = []
        for record in records:
            if not isinstance(record, self.record_type):
                raise TypeError(
                    f"{self.path} is a log of {self.record_type.__name__}, got {record!r}"
                )
            rows.append([write(value) for write, value in zip(self._writers, record, strict=True)])
        self._pending += rows
        if time.monotonic() - self._written >= _SECONDS_BETWEEN_WRITES:
            self._write()

    def position(self) -> int:
        """How many bytes the file has, once everything that was appended has been written."""
        self._write()
        return os.fstat(self._file.fileno()).st_size

    def cut(self, position: int) -> None:
        """Remove what was appended after the file had this position.

        Raises:
            ValueError: The file is shorter, or no line ends there. Nothing has been removed.
        """
        size = self.position()
        if not len(self._header) <= position <= size:
            raise ValueError(
                f"{self.path} has {size} bytes, {len(self._header)} of them its header, and cannot "
                f"be cut at {position}"
            )
        self._file.seek(position - 1)
        if self._file.read(1) != b"\n":
            raise ValueError(f"{self.path} cannot be cut at {position}, where no line ends")
        self._file.truncate(position)

    def close(self) -> None:
        """Write what is left, and close the file. Closing twice does no harm."""
        if not self._file.closed:
            try:
                self._write()
            finally:
                self._file.close()

    def _begin(self) -> None:
        self._file.seek(0)
        header = self._file.readline()
        if header.endswith(b"\n") or not self._header.startswith(header):
            check_header(self.path, header, self.record_type)
        end = _end_of_lines(self._file)
        self._file.truncate(end)
        if end == 0:
            self._put(self._header)

    def _write(self) -> None:
        self._written = time.monotonic()
        # Taken away first: after an interrupt rows may be missing, but none is there twice.
        rows, self._pending = self._pending, []
        if rows:
            self._put(encoded(rows))

    def _put(self, text: bytes) -> None:
        start = os.fstat(self._file.fileno()).st_size
        left = memoryview(text)
        try:
            while left:
                left = left[self._file.write(left) :]
        except BaseException:  # such as a full disk, or Ctrl-C
            self._file.truncate(start)
            raise


class RunLogs:
    """The four logs of a run, in the folder ``logs`` of its folder.

    Args:
        folder: Of the run.
    """

    def __init__(self, folder: Path) -> None:
        logs = folder / "logs"
        with ExitStack() as opened:
            self.episodes = CsvLog(logs / "episodes.csv", EpisodeRecord)
            opened.enter_context(closing(self.episodes))
            self.progress = CsvLog(logs / "progress.csv", ProgressRecord)
            opened.enter_context(closing(self.progress))
            self.evaluations = CsvLog(logs / "evaluations.csv", EvaluationRecord)
            opened.enter_context(closing(self.evaluations))
            self.ratings = CsvLog(logs / "ratings.csv", RatingRecord)
            opened.enter_context(closing(self.ratings))
            self._opened = opened.pop_all()

    def positions(self) -> dict[str, int]:
        """Where each log ends: what a checkpoint keeps, to cut the logs back there."""
        return {name: log.position() for name, log in self._by_name().items()}

    def cut(self, positions: Mapping[str, int]) -> None:
        """Remove what was appended after ``positions`` were told.

        Args:
            positions: Logs that are not among them are left as they are.

        Raises:
            ValueError: There is no log of that name, or it never had that position.
        """
        logs = self._by_name()
        for name in positions:
            if name not in logs:
                raise ValueError(f"there is no log {name!r}, only {', '.join(logs)}")
        for name, position in positions.items():
            logs[name].cut(position)

    def close(self) -> None:
        """Write what is left, and close the files. Closing twice does no harm."""
        self._opened.close()

    def _by_name(self) -> dict[str, CsvLog[Any]]:
        logs = (self.episodes, self.progress, self.evaluations, self.ratings)
        return {log.path.stem: log for log in logs}


def _end_of_lines(file: io.FileIO) -> int:
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - _BLOCK)
        file.seek(start)
        found = file.read(end - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        end = start
    return 0
