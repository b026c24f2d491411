"""Displays: their content, any terminal size, and the restored terminal."""

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
from tests.train.reporting.records import evaluation, evaluation_without_opponent, progress, rating

SHOW, HIDE = "\x1b[?25h", "\x1b[?25l"
SIZES = [(1, 1), (2, 5), (5, 24), (9, 2), (20, 24), (63, 50), (80, 24), (250, 60)]


class ManualClock:
    """A clock that is advanced by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class TickingClock:
    """A clock that advances by a second with each call."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def terminal(width=100, height=50):
    return Console(
        file=io.StringIO(), width=width, height=height, force_terminal=True, color_system=None
    )


def show_everything(display):
    for step in range(0, 4001, 200):
        display.progress(progress(step))
    display.progress(progress(3000, phase="self-play", phase_number=1, mean_reward=None))
    for name in ("weak", "strong", *(f"snapshot-{number}" for number in range(30))):
        display.evaluation(evaluation(opponent=name))
    display.evaluation(evaluation_without_opponent())
    display.ratings([rating(player=f"player-{number}", rating=number) for number in range(40)])
    display.note("checkpoint saved")


def text_of(console):
    return re.sub(r"\x1b\[[0-9?;]*[a-zA-Z]", "", console.file.getvalue())


# The live display


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_the_panel_fits_any_terminal(width, height):
    console = terminal(width, height)
    with LiveDisplay(
        "a run of a long name", ["basics", "self-play"], "4,000 steps", console=console,
        clock=TickingClock(),
    ) as display:  # fmt: skip
        show_everything(display)
    assert max(len(line) for line in text_of(console).splitlines()) <= max(width, 2)


def test_the_panel_shows_all_records():
    console = terminal(120)
    with LiveDisplay("hockey", ["basics", "self-play"], "for fun", console=console) as display:
        for step in (1000, 2000):
            display.progress(progress(step, updates_per_second=25.0))
        display.evaluation(evaluation(win_rate=0.123))
        display.evaluation(evaluation(step=2000))
        display.evaluation(evaluation(opponent="strong"))
        display.ratings([rating(player="snapshot-1", rating=1.5), rating()])
    last = text_of(console).split("hockey")[-1]
    for texts in (
        ["for fun", "phase 1 of 2: basics", "50.0%"],
        ["steps/s 100", "updates/s 25", "updates per step 0.25", "time left 20 s"],
        ["recent return 2 ▁█", "critic 0.25", "actor -1.5"],
        ["weak 60.0% 31.0% to 83.0% 10 2,000", "strong 60.0% 31.0% to 83.0% 10 1,000"],
        ["main 18.5 2.2 25.0 12", "snapshot-1 1.5"],
    ):
        for text in texts:
            assert text in re.sub(r" +", " ", last)
    assert "12.3%" not in last


def test_markup_and_control_characters_in_names_are_escaped():
    console = terminal()
    name = "[bold]one[/] [/]two :dog: \x1b[31m\ud800\n three"
    with LiveDisplay(name, [name], name, console=console, clock=TickingClock()) as display:
        display.progress(progress(phase=name, losses={name: 1.0}))
        display.evaluation(evaluation(opponent=name))
        display.ratings([rating(player=name)])
        display.note(name)
    assert text_of(console).count("[bold]one[/] [/]two :dog: ?[31m??") >= 1
    assert "\x1b[31m" not in console.file.getvalue()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e308, 5e-324, 0])
def test_extreme_numbers_can_be_shown(number, capsys):
    record = progress()._replace(
        seconds=number, phase_share=number, share=number, steps_per_second=number,
        updates_per_second=number, mean_reward=number, win_rate=number, losses={"one": number},
    )  # fmt: skip
    evaluated = evaluation(win_rate=number, low=number, high=number, mean_reward=number)
    displays = [LiveDisplay("run", ["one"], console=terminal(), clock=TickingClock())]
    displays += [PlainDisplay("run", ["one"], clock=TickingClock())]
    for display in displays:
        with display:
            display.progress(record)
            display.evaluation(evaluated)
            display.ratings([rating(rating=number, mean=number, deviation=number)])


def test_notes_are_printed_above_the_panel():
    console = terminal()
    with LiveDisplay("run", ["one"], console=console) as display:
        display.note("checkpoint saved\nand another")
        assert text_of(console).splitlines()[-1].startswith("╰")
    lines = text_of(console).splitlines()
    assert "checkpoint saved" in lines
    assert lines[lines.index("and another") + 1].startswith("╭")


def test_the_panel_is_refreshed_at_most_twice_a_second_and_on_close():
    console, clock = terminal(), ManualClock()
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


def test_the_terminal_is_restored_when_the_display_is_garbage_collected():
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
def test_the_terminal_is_restored_when_the_program_exits(end):
    controller, terminal_end = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(end)], stdout=terminal_end, stderr=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", "PYTHONIOENCODING": "utf-8"},
    ):  # fmt: skip
        os.close(terminal_end)
        output = b""
        try:
            while data := os.read(controller, 4096):
                output += data
        except OSError:  # Linux reports a closed terminal as an error
            os.close(controller)
    assert b"LiveDisplay" in output
    assert output.rindex(SHOW.encode()) > output.rindex(HIDE.encode())


# Displays without a terminal


def test_without_verbose_nothing_is_printed(capsys):
    with make_display(False, "run", ["one"]) as display:
        assert isinstance(display, SilentDisplay)
        show_everything(display)
    assert capsys.readouterr() == ("", "")


class Screen(io.TextIOWrapper):
    """A standard output that claims to be a terminal."""

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
def test_a_limited_terminal_gets_the_plain_display(monkeypatch, term, encoding, kind):
    screen = Screen(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", screen)
    monkeypatch.setenv("TERM", term)
    monkeypatch.setenv("COLUMNS", "20")
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    with make_display(True, "flöte 笛", ["one"]) as display:
        assert type(display) is kind
        show_everything(display)
        display.note("笛")
    screen.flush()
    assert screen.buffer.getvalue()


def test_a_display_without_standard_output_is_silent(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with make_display(True, "run", ["one"]) as display:
        show_everything(display)


def test_progress_is_printed_every_ten_seconds(capsys):
    clock = ManualClock()
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
        "return 1 | win rate 50.0% | 30 s left"
    )


def test_the_last_progress_is_always_printed(capsys):
    display = PlainDisplay("run", ["basics"], clock=ManualClock())
    for step in (1000, 2000, 3000):
        display.progress(progress(step, mean_reward=None, win_rate=None))
    assert capsys.readouterr().out.count("\n") == 1
    display.progress(progress(4000))
    assert "step 4,000" in capsys.readouterr().out  # the run is done
    display.progress(progress(3500))
    display.close()
    assert "step 3,500" in capsys.readouterr().out


def test_lines_of_evaluations_ratings_and_notes(capsys):
    with PlainDisplay("run", ["basics"]) as display:
        display.evaluation(evaluation())
        display.evaluation(evaluation_without_opponent())
        display.ratings([])
        display.ratings([rating(player=str(number), rating=number) for number in range(9)])
        display.note("checkpoint saved\nat last")
    assert capsys.readouterr().out.splitlines() == [
        "[run] evaluation against weak: win rate 60.0% (31.0% to 83.0%) in 10 games",
        "[run] evaluation: mean return 0.5 (-3 to 4) in 10 games",
        "[run] league: 8 8.0, 7 7.0, 6 6.0, 5 5.0, 4 4.0",
        "[run] checkpoint saved",
        "[run] at last",
    ]


def test_pending_progress_is_discarded_by_a_note(capsys):
    with PlainDisplay("run", ["one"], clock=ManualClock()) as display:
        display.progress(progress(1000))
        display.progress(progress(2000))
        display.note("saved")
    assert capsys.readouterr().out.splitlines()[-1] == "[run] saved"
