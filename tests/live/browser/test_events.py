"""The tables of workers and of events."""

import os
import signal

import pytest

from tests.live.browser.browser_window import GAP, UNKNOWN


def kinds(window):
    return window.texts("#log .kind")


def announcement(window):
    return window.run("return document.querySelector('#log-announcement').textContent")


def test_workers_are_listed_with_their_slots_processes_and_loads(window, in_processes):
    window.open(in_processes.url)
    states = in_processes.envs.unwrapped.pool.worker_states()
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


def test_a_killed_worker_is_listed_as_crash_and_restart(window, in_processes):
    window.open(in_processes.url)
    window.wait_for(lambda: kinds(window)[-1:] == ["start"])
    pool = in_processes.envs.unwrapped.pool
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
    # It is announced to screen readers.
    assert window.attribute("#log-announcement", "aria-live") == "polite"
    announced = window.wait_for(lambda: announcement(window))
    assert "crash" in announced or "restart" in announced


def test_the_newest_event_is_first_and_earlier_ones_are_not_announced(window, in_processes):
    event_log = in_processes.page.watcher.event_log
    event_log.add("checkpoint", "the second newest")
    event_log.add("checkpoint", "the newest")
    window.open(in_processes.url)
    window.wait_for(lambda: "the newest" in window.texts("#log .text"))
    assert window.texts("#log .text")[:2] == ["the newest", "the second newest"]
    assert announcement(window) == ""


def test_the_log_can_be_filtered_by_kind(window, in_processes):
    event_log = in_processes.page.watcher.event_log
    event_log.add("note", "first note")
    event_log.add("phase", "first phase")
    window.open(in_processes.url)
    window.wait_for(lambda: {"start", "note", "phase"} <= set(kinds(window)))
    window.click("#log-kinds [data-kind=phase]")
    assert set(kinds(window)) == {"phase"}
    # Later events are filtered too.
    event_log.add("note", "second note")
    event_log.add("phase", "second phase")
    window.wait_for(lambda: "second phase" in window.text("#log"))
    assert set(kinds(window)) == {"phase"}
    window.press("ARROW_LEFT")  # moves between the radio buttons
    assert len(set(kinds(window))) == 1
    assert "phase" not in kinds(window)
    window.click("#log-kinds [data-kind=all]")
    assert "second note" in window.texts("#log .text")
    assert "first phase" in window.texts("#log .text")


def test_text_from_the_server_is_not_interpreted_as_html(window, in_processes, monkeypatch):
    text = "<img src=x onerror=alert(1)> <b>bold</b> &amp; <script>"
    monkeypatch.setattr(in_processes.page.watcher, "title", text)
    in_processes.page.watcher.event_log.add("note", text)
    window.open(in_processes.url)
    window.wait_for(lambda: window.text("#title") == text)
    assert text in window.texts("#log .text")
    assert not window.is_visible("main img, main b, #title *")


def test_the_reason_is_shown_if_there_are_no_frames(window, in_processes):
    window.open(in_processes.url)
    assert "render_mode" in in_processes.frames.unavailable
    assert window.text("#mosaic-message") == in_processes.frames.unavailable
    assert not window.is_visible(".tile")
