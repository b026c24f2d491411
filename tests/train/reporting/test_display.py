"""Displays fit everywhere, tell what they are told, and leave the terminal as it was."""

import gc
import io
import os
import pty
import re
import subprocess
import sys
from contextlib import suppress

import pytest
from rich.console import Console

from shoal.train._reporting.display import LiveDisplay, PlainDisplay, SilentDisplay, make_display
from tests.train.reporting.records import alone, evaluation, progress, rating

SHOW, HIDE = "\x1b[?25h", "\x1b[?25l"
SIZES = [(1, 1), (2, 5), (5, 24), (9, 2), (20, 24), (63, 50), (80, 24), (250, 60)]


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Hasty:
    """A clock by which every call is a second later."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def terminal(width=100, height=50):
    return Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None
    )


def tell_everything(display):
    for step in range(0, 4001, 200):
        display.progress(progress(step))
    display.progress(progress(3000, phase="self-play", phase_number=1, mean_reward=None))
    for name in ("weak", "strong", *(f"snapshot-{number}" for number in range(30))):
        display.evaluation(evaluation(opponent=name))
    display.evaluation(alone())
    display.ratings([rating(player=f"player-{number}", rating=number) for number in range(40)])
    display.note("checkpoint saved")


def text_of(console):
    return re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", console.file.getvalue())


# The live display


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_it_fits_any_terminal(width, height):
    console = terminal(width, height)
    with LiveDisplay(
        "a run of a long name", ["basics", "self-play"], "4,000 steps", console=console,
        clock=Hasty(),
    ) as display:  # fmt: skip
        tell_everything(display)
    assert max(len(line) for line in text_of(console).splitlines()) <= max(width, 2)


def test_it_tells_what_there_is_to_tell():
    console = terminal(120)
    with LiveDisplay("hockey", ["basics", "self-play"], "for fun", console=console) as display:
        for step in (1000, 2000):
            display.progress(progress(step, updates_per_second=25.0))
        display.evaluation(evaluation(win_rate=0.123))
        display.evaluation(evaluation(step=2000))
        display.evaluation(evaluation(opponent="strong"))
        display.ratings([rating(player="snapshot-1", rating=1.5), rating()])
    last = text_of(console).split("hockey")[-1]
    for told in (
        ["for fun", "phase 1 of 2: basics", "50.0%"],
        ["steps/s 100", "updates/s 25", "updates per step 0.25", "time left 20 s"],
        ["return lately 2 ▁█", "critic 0.25", "actor -1.5"],
        ["weak 60.0% 31.0% to 83.0% 10 2,000", "strong 60.0% 31.0% to 83.0% 10 1,000"],
        ["main 18.5 2.2 25.0 12", "snapshot-1 1.5"],
    ):
        for text in told:
            assert text in re.sub(r" +", " ", last)
    assert "12.3%" not in last


def test_what_names_say_is_not_obeyed():
    console = terminal()
    named = "[bold]one[/] [/]two :dog: \x1b[31m\ud800\n three"
    with LiveDisplay(named, [named], named, console=console, clock=Hasty()) as display:
        display.progress(progress(phase=named, losses={named: 1.0}))
        display.evaluation(evaluation(opponent=named))
        display.ratings([rating(player=named)])
        display.note(named)
    assert text_of(console).count("[bold]one[/] [/]two :dog: ?[31m??") >= 1
    assert "\x1b[31m" not in console.file.getvalue()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, 0])
def test_any_number_can_be_shown(number, capsys):
    record = progress()._replace(
        seconds=number, phase_share=number, share=number, steps_per_second=number,
        updates_per_second=number, mean_reward=number, win_rate=number, losses={"one": number},
    )  # fmt: skip
    tested = evaluation(win_rate=number, low=number, high=number, mean_reward=number)
    displays = [LiveDisplay("run", ["one"], console=terminal(), clock=Hasty())]
    displays += [PlainDisplay("run", ["one"], clock=Hasty())]
    for display in displays:
        with display:
            display.progress(record)
            display.evaluation(tested)
            display.ratings([rating(rating=number, mean=number, deviation=number)])


def test_notes_stay_above_the_picture():
    console = terminal()
    with LiveDisplay("run", ["one"], console=console) as display:
        display.note("checkpoint saved\nand another")
        assert text_of(console).splitlines()[-1].startswith("╰")
    lines = text_of(console).splitlines()
    assert "checkpoint saved" in lines
    assert lines[lines.index("and another") + 1].startswith("╭")


def test_it_is_drawn_now_and_then_only_and_once_more_in_the_end():
    console, clock = terminal(), Clock()
    display = LiveDisplay("run", ["one"], console=console, clock=clock)
    display.progress(progress(1000))
    assert "1,000" not in text_of(console)
    clock.now += 0.5
    display.progress(progress(2000))
    assert "2,000" in text_of(console)
    display.progress(progress(3000))
    assert "3,000" not in text_of(console)
    display.close()
    assert "3,000" in text_of(console)


def test_the_terminal_is_restored_after_an_error():
    console, stdout = terminal(), sys.stdout
    with suppress(KeyboardInterrupt), LiveDisplay("run", ["one"], console=console) as display:
        display.progress(progress())
        assert HIDE in console.file.getvalue()
        assert SHOW not in console.file.getvalue()
        raise KeyboardInterrupt
    assert SHOW in console.file.getvalue()
    assert sys.stdout is stdout
    length = len(console.file.getvalue())
    display.close()
    assert len(console.file.getvalue()) == length


def test_the_terminal_is_restored_if_nobody_closes_the_display():
    console, stdout = terminal(), sys.stdout
    display = LiveDisplay("run", ["one"], console=console)
    del display
    gc.collect()
    assert SHOW in console.file.getvalue()
    assert sys.stdout is stdout


PROGRAM = """
from shoal.train._reporting.display import make_display
from tests.train.reporting.records import progress
display = make_display(True, "run", ["one"])
display.progress(progress())
print(type(display).__name__)
{}
"""


@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "1 / 0"])
def test_a_program_leaves_its_terminal_as_it_was(end):
    here, there = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(end)], stdout=there, stderr=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
    ):  # fmt: skip
        os.close(there)
        told = b""
        try:
            while some := os.read(here, 4096):
                told += some
        except OSError:  # so the end of a terminal is told
            os.close(here)
    assert b"LiveDisplay" in told
    assert told.rindex(SHOW.encode()) > told.rindex(HIDE.encode())


# Displays without a terminal


def test_who_wants_nothing_gets_nothing(capsys):
    with make_display(False, "run", ["one"]) as display:
        assert isinstance(display, SilentDisplay)
        tell_everything(display)
    assert capsys.readouterr() == ("", "")


class Screen(io.TextIOWrapper):
    """A standard output that says that it is a terminal."""

    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("term", "encoding", "kind"),
    [
        ("xterm", "utf-8", LiveDisplay),
        ("dumb", "utf-8", PlainDisplay),
        ("xterm", "ascii", PlainDisplay),
        ("xterm", "latin-1", PlainDisplay),
    ],
)
def test_a_terminal_that_can_do_too_little_gets_lines(monkeypatch, term, encoding, kind):
    screen = Screen(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "20")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    with make_display(True, "flöte 笛", ["one"]) as display:
        assert type(display) is kind
        tell_everything(display)
        display.note("笛")
    screen.flush()
    assert screen.buffer.getvalue()


def test_a_program_without_output(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with make_display(True, "run", ["one"]) as display:
        tell_everything(display)


def test_lines_of_progress(capsys):
    clock = Clock()
    display = PlainDisplay("run", ["basics", "self-play"], clock=clock)
    for step in range(0, 3001, 200):
        display.progress(progress(step))
        clock.now += 2.0
    display.close()
    display.close()
    lines = capsys.readouterr().out.splitlines()
    assert [re.search(r"step ([\d,]+) ", line)[1] for line in lines] == [
        "0", "1,000", "2,000", "3,000"
    ]  # fmt: skip
    assert lines[1] == (
        "[run] 25.0% | phase 1/2 basics 25.0% | step 1,000 | 100 steps/s | 50 updates/s | "
        "return 1 | wins 50.0% | 30 s left"
    )


def test_what_was_told_last_is_printed_in_any_case(capsys):
    display = PlainDisplay("run", ["basics"], clock=Clock())
    for step in (1000, 2000, 3000):
        display.progress(progress(step, mean_reward=None, win_rate=None))
    assert capsys.readouterr().out.count("\n") == 1
    display.progress(progress(4000))
    assert "step 4,000" in capsys.readouterr().out  # the run is done
    display.progress(progress(3500))
    display.close()
    assert "step 3,500" in capsys.readouterr().out


def test_other_lines(capsys):
    with PlainDisplay("run", ["basics"]) as display:
        display.evaluation(evaluation())
        display.evaluation(alone())
        display.ratings([])
        display.ratings([rating(player=str(number), rating=number) for number in range(9)])
        display.note("checkpoint saved\nat last")
    assert capsys.readouterr().out.splitlines() == [
        "[run] evaluation against weak: won 60.0% (31.0% to 83.0%) in 10 games",
        "[run] evaluation: mean return 0.5 (-3 to 4) in 10 games",
        "[run] league: 8 8.0, 7 7.0, 6 6.0, 5 5.0, 4 4.0",
        "[run] checkpoint saved",
        "[run] at last",
    ]


def test_older_progress_is_not_printed_after_newer_lines(capsys):
    with PlainDisplay("run", ["one"], clock=Clock()) as display:
        display.progress(progress(1000))
        display.progress(progress(2000))
        display.note("saved")
    assert capsys.readouterr().out.splitlines()[-1] == "[run] saved"
