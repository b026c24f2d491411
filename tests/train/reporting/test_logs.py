"""Logs: reading, writing, truncation, and recovery after a killed run."""

import resource
import tempfile
import time
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.train._records import EpisodeRecord, EvaluationRecord, ProgressRecord, RatingRecord
from shoal.train._reporting.columns import columns_of
from shoal.train._reporting.log_reader import RunRecords, read_records, read_run
from shoal.train._reporting.logs import CsvLog, RunLogs
from tests.train.reporting.records import (
    KINDS,
    episode,
    evaluation,
    evaluation_without_opponent,
    progress,
    rating,
    records,
    same,
)

ROWS = [
    episode(1),
    episode(2, winner=None, opponent='the "strong", one\nof two'),
    episode(3, reward=float("nan")),
    episode(4, opponent=""),
]


def written(path, rows, kind=EpisodeRecord):
    """Write rows to a log, and return the bytes of the file."""
    log = CsvLog(path, kind)
    log.append(rows)
    log.close()
    return path.read_bytes()


# Reading


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_records_survive_a_round_trip(kind, data):
    rows = data.draw(st.lists(records(kind), max_size=5))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "some.csv")
        text = written(path, rows, kind)
        assert same(read_records(path, kind), rows)
        assert (
            text.count(b"\n") == len(rows) + 1
        )  # each record is one line, also with line breaks in its text
        types = [[type(value) for value in row] for row in rows]
        assert [[type(value) for value in row] for row in read_records(path, kind)] == types


def test_numpy_numbers_are_supported(tmp_path):
    record = progress(np.int64(5), seconds=np.float32(0.5), losses={"critic": np.float32(0.25)})
    written(tmp_path / "log.csv", [record], ProgressRecord)
    [loaded] = read_records(tmp_path / "log.csv", ProgressRecord)
    assert (loaded.step, loaded.seconds, loaded.losses) == (5, 0.5, {"critic": 0.25})
    assert type(loaded.step) is int


def test_the_header_names_the_fields(tmp_path):
    assert written(tmp_path / "log.csv", [], RatingRecord) == (
        b"step,player,role,rating,mean,deviation,games\n"
    )


def test_at_most_reads_evenly_spaced_records(tmp_path):
    path = tmp_path / "log.csv"
    written(path, [episode(number) for number in range(1, 1001)])
    for at_most in (1, 7, 100, 999, 1000, 5000):
        numbers = [row.episode for row in read_records(path, EpisodeRecord, at_most)]
        assert min(at_most, 1000) / 2 <= len(numbers) <= at_most
        assert numbers[0] == 1
        assert len(set(np.diff(numbers))) <= 1
    with pytest.raises(ValueError, match="at_most must be a positive integer or None, got 0"):
        read_records(path, EpisodeRecord, 0)


def test_an_invalid_line_raises_with_its_number(tmp_path):
    path = tmp_path / "log.csv"
    good = written(path, ROWS)
    path.write_bytes(good + b"1,2,3\n")
    with pytest.raises(
        ValueError, match=r"log.csv, line 6 is not a valid EpisodeRecord: it has 3 columns"
    ):
        read_records(path, EpisodeRecord)
    path.write_bytes(good.replace(b"80,1,", b"80,one,", 1))
    with pytest.raises(ValueError, match=r"line 2 is not a valid EpisodeRecord: .*'one'"):
        read_records(path, EpisodeRecord)
    path.write_bytes(good + b'80,1,"\xff"\r,,,\n')
    with pytest.raises(ValueError, match="line 6 is not a valid EpisodeRecord"):
        read_records(path, EpisodeRecord)
    progressed = written(tmp_path / "progress.csv", [progress(losses={})], ProgressRecord)
    (tmp_path / "progress.csv").write_bytes(progressed.replace(b"{}", b"[]"))
    with pytest.raises(ValueError, match="line 2 is not a valid ProgressRecord: not a JSON object"):
        read_records(tmp_path / "progress.csv", ProgressRecord)


def test_a_log_with_other_columns_raises(tmp_path):
    path = tmp_path / "log.csv"
    before = written(path, [rating()], RatingRecord)
    with pytest.raises(ValueError, match=r"has the columns step,player.*, expected step,episode"):
        read_records(path, EpisodeRecord)
    with pytest.raises(ValueError, match=r"has the columns step,player.*, expected step,episode"):
        CsvLog(path, EpisodeRecord)
    assert path.read_bytes() == before
    path.write_bytes(b"another file\nwithout a last newline")
    with pytest.raises(ValueError, match="has the columns another file"):
        CsvLog(path, EpisodeRecord)
    assert path.read_bytes() == b"another file\nwithout a last newline"


# Killed runs


def test_complete_lines_survive_a_kill_at_any_byte(tmp_path):
    path = tmp_path / "log.csv"
    whole = written(path, ROWS)
    for size in range(len(whole) + 1):
        path.write_bytes(whole[:size])
        lines = max(0, whole[:size].count(b"\n") - 1)
        assert same(read_records(path, EpisodeRecord), ROWS[:lines])
        assert written(path, ROWS[lines:]) == whole


def test_a_long_incomplete_line_is_removed(tmp_path):
    path = tmp_path / "log.csv"
    whole = written(path, ROWS)
    path.write_bytes(whole + b"5," * 100_000)
    assert written(path, []) == whole


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(records(RatingRecord), max_size=3), max_size=5), st.data())
def test_a_resumed_run_leaves_the_same_log_as_an_uninterrupted_one(batches, data):
    batches_before = data.draw(st.integers(0, len(batches)))
    with tempfile.TemporaryDirectory() as folder:
        rows = [row for batch in batches for row in batch]
        uninterrupted = written(Path(folder, "one.csv"), rows, RatingRecord)
        log = CsvLog(Path(folder, "other.csv"), RatingRecord)
        for index, batch in enumerate(batches):
            if index == batches_before:
                checkpoint = log.position()
            log.append(batch)
        if batches_before == len(batches):
            checkpoint = log.position()
        log.close()
        log = CsvLog(Path(folder, "other.csv"), RatingRecord)
        log.truncate(checkpoint)
        for batch in batches[batches_before:]:
            log.append(batch)
        log.close()
        assert Path(folder, "other.csv").read_bytes() == uninterrupted


def test_truncate_also_removes_buffered_rows(tmp_path):
    log = CsvLog(tmp_path / "log.csv", EpisodeRecord)
    log.append(ROWS[:2])
    position = log.position()
    log.append(ROWS[2:])
    log.truncate(position)
    assert log.position() == position
    log.close()
    assert same(read_records(log.path, EpisodeRecord), ROWS[:2])


def test_a_log_can_be_truncated_only_at_the_end_of_a_line(tmp_path):
    path = tmp_path / "log.csv"
    whole = written(path, ROWS)
    ends = [index + 1 for index, byte in enumerate(whole) if byte == ord("\n")]
    log = CsvLog(path, EpisodeRecord)
    for position in set(range(-1, len(whole) + 3)) - set(ends):
        with pytest.raises(ValueError, match=f"cannot be truncated to {position} bytes"):
            log.truncate(position)
    assert path.read_bytes() == whole
    for position in reversed(ends):
        log.truncate(position)
        assert path.read_bytes() == whole[:position]
    log.close()


# Writing


def test_rows_are_buffered_for_a_second(tmp_path, monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    path = tmp_path / "log.csv"
    log = CsvLog(path, EpisodeRecord)
    empty = path.stat().st_size
    for number in range(1, 1000):
        log.append([episode(number)])
    assert path.stat().st_size == empty
    now += 1.0
    log.append([episode(1000)])
    assert len(read_records(path, EpisodeRecord)) == 1000
    log.append(ROWS)
    assert log.position() == path.stat().st_size
    log.append(ROWS)
    log.close()
    assert len(read_records(path, EpisodeRecord)) == 1008


def test_appending_is_fast(tmp_path):
    rows = [episode(number) for number in range(20_000)]
    log = CsvLog(tmp_path / "log.csv", EpisodeRecord)
    start = time.process_time()
    for first in range(0, len(rows), 16):
        log.append(rows[first : first + 16])
    log.position()
    assert time.process_time() - start < 2.0  # typically 0.1
    log.close()


def test_a_batch_with_an_invalid_row_is_not_appended(tmp_path):
    log = CsvLog(tmp_path / "log.csv", EpisodeRecord)
    with pytest.raises(TypeError, match=r"is a log of EpisodeRecord, got RatingRecord"):
        log.append([episode(1), rating()])
    with pytest.raises(TypeError):
        log.append([episode(1), episode(2, length="long")])
    log.append([episode(3)])
    log.close()
    log.close()
    assert read_records(log.path, EpisodeRecord) == [episode(3)]


def test_a_full_disk_leaves_no_incomplete_line(tmp_path):
    log = CsvLog(tmp_path / "log.csv", EpisodeRecord)
    log.append([episode(1)])
    position = log.position()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (position + 10, limits[1]))
    try:
        log.append([episode(2)])
        with pytest.raises(OSError, match="File too large"):
            log.position()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    log.append([episode(3)])
    log.close()
    assert read_records(log.path, EpisodeRecord) == [episode(1), episode(3)]


def test_a_field_of_an_unsupported_type_raises():
    with pytest.raises(TypeError, match=r"RunRecords.episodes is list.*expected one of str, int"):
        columns_of(RunRecords)


# The logs of a run


def fill(logs):
    logs.episodes.append([episode(1), episode(2)])
    logs.progress.append([progress()])
    logs.evaluations.append([evaluation(), evaluation_without_opponent()])
    logs.ratings.append([rating(), rating(player="weak")])


def test_run_logs_are_written_and_truncated_together(tmp_path):
    logs = RunLogs(tmp_path)
    fill(logs)
    positions = logs.positions()
    assert sorted(positions) == ["episodes", "evaluations", "progress", "ratings"]
    before = read_run(tmp_path)
    assert before == (
        [episode(1), episode(2)],
        [progress()],
        [evaluation(), evaluation_without_opponent()],
        before[3],
    )
    assert [row.player for row in before.ratings] == ["main", "weak"]
    fill(logs)
    logs.close()
    logs.close()
    assert len(read_run(tmp_path).evaluations) == 4
    logs = RunLogs(tmp_path)
    logs.truncate({"ratings": positions["ratings"]})
    assert len(read_run(tmp_path).ratings) == 2
    assert len(read_run(tmp_path).episodes) == 4
    logs.truncate(positions)
    logs.close()
    assert read_run(tmp_path) == before
    with (
        closing(RunLogs(tmp_path)) as logs,
        pytest.raises(ValueError, match="unknown log 'losses': expected one of episodes, progress"),
    ):
        logs.truncate({"losses": 3})


def test_missing_logs_have_no_records(tmp_path):
    assert read_run(tmp_path) == ([], [], [], [])
    with pytest.raises(FileNotFoundError):
        read_records(tmp_path / "log.csv", EvaluationRecord)
