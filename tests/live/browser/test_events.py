"""Workers, and the event log."""

import os
import signal

import pytest

from tests.live.browser.browser_window import GAP, UNKNOWN


def kinds(window):
    return window.texts("#log .kind")


def test_who_drives_which_slots_is_told(window, staffed):
    window.open(staffed.url)
    states = staffed.envs.unwrapped.pool.worker_states()
    rows = window.wait_for(lambda: window.texts("#workers tr"))
    assert len(rows) == len(states)
    for row, state in zip(rows, states, strict=True):
        assert state.name in row
        assert f"{state.slots[0]}{UNKNOWN}{state.slots[-1]}" in row
        assert state.process is None or f"process {state.process}" in row
    window.wait_for(lambda: UNKNOWN not in window.texts("#workers .share"))
    lengths = window.run(
        "return [...document.querySelectorAll('#workers tr')].map(row =>"
        "  row.querySelector('.fill').getBoundingClientRect().width"
        "  / row.querySelector('.bar').getBoundingClientRect().width)"
    )
    shares = [float(text.split(GAP)[0]) / 100 for text in window.texts("#workers .share")]
    assert lengths == pytest.approx([min(1, share) for share in shares], abs=0.02)


def test_a_killed_worker_shows_as_a_crash_and_as_a_restart(window, staffed):
    window.open(staffed.url)
    window.wait_for(lambda: kinds(window)[-1:] == ["start"])
    pool = staffed.envs.unwrapped.pool
    victim = next(state for state in pool.worker_states() if state.process is not None)
    window.wait_for(lambda: window.number("#batches") > 10)
    before = window.texts("#workers td:last-child")
    os.kill(victim.process, signal.SIGKILL)
    window.wait_for(lambda: {"crash", "restart"} <= set(kinds(window)))
    assert any(
        f"slot {victim.slots[0]} " in text for text in window.texts("#log [data-kind=crash] .text")
    )
    window.wait_for(lambda: window.texts("#workers td:last-child") != before)
    assert "1" in window.texts("#workers td:last-child")
    # Who cannot see it hears of it, politely.
    assert window.attribute("#log-news", "aria-live") == "polite"
    heard = window.wait_for(
        lambda: window.run("return document.querySelector('#log-news').textContent")
    )
    assert "crash" in heard or "restart" in heard


def test_the_newest_event_is_the_first_and_what_was_there_is_not_announced(window, staffed):
    event_log = staffed.page.watcher.event_log
    event_log.add("checkpoint", "the one before")
    event_log.add("checkpoint", "the newest one")
    window.open(staffed.url)
    window.wait_for(lambda: "the newest one" in window.text("#log"))
    assert window.texts("#log .text")[:2] == ["the newest one", "the one before"]
    assert window.run("return document.querySelector('#log-news').textContent") == ""


def test_the_log_is_filtered_by_kind(window, staffed):
    event_log = staffed.page.watcher.event_log
    event_log.add("note", "first note")
    event_log.add("phase", "first phase")
    window.open(staffed.url)
    window.wait_for(lambda: {"start", "note", "phase"} <= set(kinds(window)))
    window.click("#log-kinds [data-kind=phase]")
    assert set(kinds(window)) == {"phase"}
    # What comes later is filtered too.
    event_log.add("note", "second note")
    event_log.add("phase", "second phase")
    window.wait_for(lambda: "second phase" in window.text("#log"))
    assert set(kinds(window)) == {"phase"}
    window.press("ARROW_LEFT")  # these are radio buttons: the keyboard moves between them
    assert len(set(kinds(window))) == 1
    assert "phase" not in kinds(window)
    window.click("#log-kinds [data-kind=all]")
    assert "second note" in window.texts("#log .text")
    assert "first phase" in window.texts("#log .text")


def test_what_the_server_tells_is_only_text(window, staffed, monkeypatch):
    text = "<img src=x onerror=alert(1)> <b>bold</b> &amp; <script>"
    monkeypatch.setattr(staffed.page.watcher, "title", text)
    staffed.page.watcher.event_log.add("note", text)
    window.open(staffed.url)
    window.wait_for(lambda: window.text("#title") == text)
    assert text in window.texts("#log .text")
    assert not window.sees("main img, main b, #title *")


def test_why_there_are_no_pictures_is_told(window, staffed):
    window.open(staffed.url)
    assert "render_mode" in staffed.frames.why_none
    assert window.text("#mosaic-none") == staffed.frames.why_none
    assert not window.sees(".tile")
