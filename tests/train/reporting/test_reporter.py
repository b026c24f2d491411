"""A reporter tells everyone, and nothing that only tells can end a run."""

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
def coarse(monkeypatch):
    """Small pictures, which are drawn sooner."""
    monkeypatch.setitem(STYLE, "savefig.dpi", 40)


def reporting(folder, verbose=False, **how):
    return Reporter(
        folder, "run", ["basics", "self-play"], verbose=verbose, **{"tensorboard": False, **how}
    )


def tell(report, records):
    report.episodes(records.episodes)
    for row in records.progress:
        report.progress(row)
    for row in records.evaluations:
        report.evaluation(row)
    report.ratings(records.ratings)


def test_everyone_is_told(tmp_path, capsys):
    records = run()
    with reporting(tmp_path, verbose=True, tensorboard=True) as report:
        tell(report, records)
        report.note("checkpoint saved")
        path = report.finish({"steps": 4000}, {"seed": 3})
        assert read_run(tmp_path) == records
    assert path.read_text("utf-8").count("data:image/png") == 5
    assert len(list((tmp_path / "tensorboard").iterdir())) == 1
    lines = capsys.readouterr().out
    for told in ("step 4,000", "against weak", "league: main", "checkpoint saved", str(path)):
        assert f"{told}" in lines


def test_a_run_that_goes_on_has_the_logs_of_one_that_never_stopped(tmp_path):
    first, then = run(50), run(80)
    for folder in ("one", "other"):
        with reporting(tmp_path / folder) as report:
            tell(report, first)
            checkpoint = report.positions()
            if folder == "one":
                tell(report, then)
            else:
                tell(report, run(5))
    with reporting(tmp_path / "other", cut_to=checkpoint, resumed_step=4000) as report:
        tell(report, then)
    assert read_run(tmp_path / "other") == read_run(tmp_path / "one")
    for log in (tmp_path / "one" / "logs").iterdir():
        assert (tmp_path / "other" / "logs" / log.name).read_bytes() == log.read_bytes()


def test_the_board_of_a_run_that_goes_on_is_purged(tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(reporter, "open_board", lambda *args: asked.append(args))
    for how in ({}, {"cut_to": {}, "resumed_step": 3000}, {"cut_to": {}}):
        reporting(tmp_path, tensorboard=True, **how).close()
    assert [purge_step for _, purge_step in asked] == [None, 3001, 1]


def test_a_lost_log_does_not_keep_a_run_from_going_on(tmp_path):
    with reporting(tmp_path) as report:
        tell(report, run(50))
        checkpoint = report.positions()
        tell(report, run(50))
    (tmp_path / "logs" / "episodes.csv").unlink()
    with pytest.warns(RuntimeWarning, match=r"a log goes on as it is: .*episodes.csv has \d+ byte"):
        report = reporting(tmp_path, cut_to=checkpoint)
    report.episodes([episode()])
    report.close()
    assert read_records(tmp_path / "logs" / "episodes.csv", EpisodeRecord) == [episode()]
    assert len(read_run(tmp_path).progress) == len(run(50).progress)


def test_without_tensorboard_a_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.warns(UserWarning, match="this run has no board"):
        report = reporting(tmp_path, tensorboard=True)
    tell(report, run(5))
    report.close()
    assert not (tmp_path / "tensorboard").exists()


@pytest.mark.parametrize("why", ["a plot fails", "no matplotlib", "a damaged log"])
def test_a_report_is_written_though_plots_fail(tmp_path, monkeypatch, why):
    def fail(records):
        raise ZeroDivisionError("by nothing")

    with reporting(tmp_path) as report:
        report.progress(progress())
        if why == "a plot fails":
            monkeypatch.setattr(charts, "losses", fail)
        elif why == "no matplotlib":
            monkeypatch.setitem(sys.modules, "matplotlib", None)
        else:
            with (tmp_path / "logs" / "ratings.csv").open("a") as log:
                log.write("what is this?\n")
        with pytest.warns(RuntimeWarning, match="the report lacks plots: "):
            path = report.finish({}, {})
        assert path.read_text("utf-8").count("data:image/png") == 3 * (why == "a plot fails")


class Gone(io.StringIO):
    """A terminal that somebody closes."""

    gone = False

    def isatty(self):
        return True

    def write(self, text):
        if self.gone:
            raise OSError(5, "Input/output error")
        return super().write(text)


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_a_run_outlives_its_terminal(tmp_path, monkeypatch, term):
    screen = Gone()
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr(sys, "stdout", screen)
    with reporting(tmp_path, verbose=True) as report:
        report.note("all is well")
        screen.gone = True
        with pytest.warns(RuntimeWarning, match="nothing is shown any more: .*Input/output error"):
            report.note("is it?")
        tell(report, run(5))
        report.note("it is")
    assert sys.stdout is screen
    assert read_run(tmp_path) == run(5)


def test_an_error_in_training_leaves_logs_and_terminal_in_order(tmp_path, monkeypatch):
    screen = Gone()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys, "stdout", screen)
    with suppress(ZeroDivisionError), reporting(tmp_path, verbose=True) as report:
        tell(report, run(5))
        assert sys.stdout is not screen
        raise ZeroDivisionError
    assert sys.stdout is screen
    assert screen.getvalue().endswith("\x1b[?25h")
    assert read_run(tmp_path) == run(5)
    report.close()


def test_if_it_cannot_begin_it_leaves_nothing_open(tmp_path, monkeypatch):
    closed = []

    class Logs(reporter.RunLogs):
        def close(self):
            super().close()
            closed.append(True)

    def fail(*how):
        raise ValueError("no such terminal")

    monkeypatch.setattr(reporter, "RunLogs", Logs)
    monkeypatch.setattr(reporter, "make_display", fail)
    with pytest.raises(ValueError, match="no such terminal"):
        reporting(tmp_path)
    assert closed


def test_silence(tmp_path, capsys):
    with reporting(tmp_path) as report:
        assert all(isinstance(shown, display.SilentDisplay) for shown in report._displays)
        report.evaluation(evaluation())
        report.ratings([rating()])
        report.note("nobody hears this")
    assert capsys.readouterr() == ("", "")
