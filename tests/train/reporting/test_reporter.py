"""The reporter: all outputs get the records, and a failing output does not end the run."""

import io
import sys
from contextlib import suppress

import pytest

from shoal.train._records import EpisodeRecord
from shoal.train._reporting import Reporter, charts, display, read_records, reporter
from shoal.train._reporting.log_reader import read_run
from shoal.train._reporting.style import STYLE
from tests.train.reporting.records import episode, evaluation, progress, rating, run


@pytest.fixture(autouse=True)
def low_resolution(monkeypatch):
    """Draw small images, which is faster."""
    monkeypatch.setitem(STYLE, "savefig.dpi", 40)


def make_reporter(folder, verbose=False, **options):
    options = {"tensorboard": False} | options
    return Reporter(folder, "run", ["basics", "self-play"], verbose=verbose, **options)


def report_all(report, records):
    report.episodes(records.episodes)
    for row in records.progress:
        report.progress(row)
    for row in records.evaluations:
        report.evaluation(row)
    report.ratings(records.ratings)


def test_records_reach_all_outputs(tmp_path, capsys):
    records = run()
    with make_reporter(tmp_path, verbose=True, tensorboard=True) as report:
        report_all(report, records)
        report.note("checkpoint saved")
        path = report.finish({"steps": 4000}, {"seed": 3})
        assert read_run(tmp_path) == records
    assert path.read_text("utf-8").count("data:image/png") == 5
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1
    lines = capsys.readouterr().out
    for text in ("step 4,000", "against weak", "league: main", "checkpoint saved", str(path)):
        assert text in lines


def test_a_resumed_run_has_the_same_logs_as_an_uninterrupted_one(tmp_path):
    first, then = run(50), run(80)
    for folder in ("one", "other"):
        with make_reporter(tmp_path / folder) as report:
            report_all(report, first)
            checkpoint = report.positions()
            if folder == "one":
                report_all(report, then)
            else:
                report_all(report, run(5))
    with make_reporter(tmp_path / "other", truncate_to=checkpoint, resumed_step=4000) as report:
        report_all(report, then)
    assert read_run(tmp_path / "other") == read_run(tmp_path / "one")
    for log in (tmp_path / "one" / "logs").iterdir():
        assert (tmp_path / "other" / "logs" / log.name).read_bytes() == log.read_bytes()


def test_a_resumed_run_purges_its_tensorboard_logs(tmp_path, monkeypatch):
    calls = []
    monkeypatch.setattr(reporter, "open_board", lambda *args: calls.append(args))
    for options in ({}, {"truncate_to": {}, "resumed_step": 3000}, {"truncate_to": {}}):
        make_reporter(tmp_path, tensorboard=True, **options).close()
    assert [purge_step for _, purge_step in calls] == [None, 3001, 1]


def test_a_run_can_be_resumed_without_one_of_its_logs(tmp_path):
    with make_reporter(tmp_path) as report:
        report_all(report, run(50))
        checkpoint = report.positions()
        report_all(report, run(50))
    (tmp_path / "logs" / "episodes.csv").unlink()
    with pytest.warns(RuntimeWarning, match=r"a log was not truncated .*episodes.csv cannot be"):
        report = make_reporter(tmp_path, truncate_to=checkpoint)
    report.episodes([episode()])
    report.close()
    assert read_records(tmp_path / "logs" / "episodes.csv", EpisodeRecord) == [episode()]
    assert len(read_run(tmp_path).progress) == len(run(50).progress)


def test_without_tensorboard_a_run_continues(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.warns(UserWarning, match="no TensorBoard logs are written"):
        report = make_reporter(tmp_path, tensorboard=True)
    report_all(report, run(5))
    report.close()
    assert not (tmp_path / "tensorboard").exists()


@pytest.mark.parametrize("cause", ["a plot fails", "no matplotlib", "a damaged log"])
def test_the_report_is_written_even_if_plots_fail(tmp_path, monkeypatch, cause):
    def fail(records):
        raise ZeroDivisionError("division by zero")

    with make_reporter(tmp_path) as report:
        report.progress(progress())
        if cause == "a plot fails":
            monkeypatch.setattr(charts, "losses", fail)
        elif cause == "no matplotlib":
            monkeypatch.setitem(sys.modules, "matplotlib", None)
        else:
            with (tmp_path / "logs" / "ratings.csv").open("a") as log:
                log.write("not a record\n")
        with pytest.warns(RuntimeWarning, match="plots are missing from the report: "):
            path = report.finish({}, {})
        assert path.read_text("utf-8").count("data:image/png") == 3 * (cause == "a plot fails")


class ClosableTerminal(io.StringIO):
    """A terminal that can be closed."""

    is_closed = False

    def isatty(self):
        return True

    def write(self, text):
        if self.is_closed:
            raise OSError(5, "Input/output error")
        return super().write(text)


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_run_continues_when_its_terminal_is_closed(tmp_path, monkeypatch, term):
    screen = ClosableTerminal()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stdout", screen)
    with make_reporter(tmp_path, verbose=True) as report:
        report.note("first")
        screen.is_closed = True
        with pytest.warns(
            RuntimeWarning, match="the display failed and was closed: .*Input/output"
        ):
            report.note("second")
        report_all(report, run(5))
        report.note("third")
    assert sys.stdout is screen
    assert read_run(tmp_path) == run(5)


def test_an_error_in_training_closes_logs_and_restores_the_terminal(tmp_path, monkeypatch):
    screen = ClosableTerminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", screen)
    with suppress(ZeroDivisionError), make_reporter(tmp_path, verbose=True) as report:
        report_all(report, run(5))
        assert sys.stdout is not screen
        raise ZeroDivisionError
    assert sys.stdout is screen
    assert screen.getvalue().endswith("\x1b[?25h")
    assert read_run(tmp_path) == run(5)
    report.close()


def test_an_error_in_the_constructor_closes_the_logs(tmp_path, monkeypatch):
    closed = []

    class Logs(reporter.RunLogs):
        def close(self):
            super().close()
            closed.append(True)

    def fail(*args):
        raise ValueError("no such terminal")

    monkeypatch.setattr(reporter, "RunLogs", Logs)
    monkeypatch.setattr(reporter, "make_display", fail)
    with pytest.raises(ValueError, match="no such terminal"):
        make_reporter(tmp_path)
    assert closed


def test_without_verbose_nothing_is_printed(tmp_path, capsys):
    with make_reporter(tmp_path) as report:
        assert all(isinstance(each, display.SilentDisplay) for each in report._displays)
        report.evaluation(evaluation())
        report.ratings([rating()])
        report.note("not shown")
    assert capsys.readouterr() == ("", "")
