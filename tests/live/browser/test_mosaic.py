"""The mosaic of frames, and the enlarged slot."""

import time


def frame_requests(window):
    """Return how often the page has requested frames."""
    return window.run(
        "return performance.getEntriesByType('resource')"
        ".filter(({name}) => name.includes('/pictures?')).length"
    )


def focused(window):
    """Return the slot whose tile has the keyboard focus, or None."""
    slot = window.run("return document.activeElement.dataset.slot ?? null")
    return None if slot is None else int(slot)


def canvas_of(slot):
    return f'.tile[data-slot="{slot}"] canvas'


def test_every_tile_shows_frames_that_change(window, flickering):
    window.open(flickering.url)
    tiles = window.wait_for(lambda: window.texts(".tile"))
    assert tiles == ["0", "1", "2", "3"]
    first = {}
    for slot in range(4):
        window.wait_for(lambda slot=slot: not window.pixels(canvas_of(slot))["blank"])
        first[slot] = window.pixels(canvas_of(slot))
        assert first[slot]["size"] == [60, 40]
    for slot in range(4):
        window.wait_for(
            lambda slot=slot: window.pixels(canvas_of(slot))["hash"] != first[slot]["hash"]
        )


def test_frames_have_the_rendered_colors(window, flickering):
    window.open(flickering.url)
    window.wait_for(lambda: window.is_visible(".tile") and not window.pixels(canvas_of(0))["blank"])
    middle = window.pixels(canvas_of(0))["middle"]
    left, right = middle[5 * 4 : 6 * 4], middle[40 * 4 : 41 * 4]
    assert left == [255, 255, 255, 255]
    assert right[0] == right[1] == right[2]
    assert right[0] % 8 == 0
    assert right[3] == 255


def test_at_most_16_slots_are_shown(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: len(window.texts(".tile")) == len(hockey.frames.tiles))
    assert window.texts(".tile") == [str(slot) for slot in hockey.frames.tiles]
    assert window.text("#mosaic-note").startswith("16 of 64")


def test_a_click_enlarges_a_slot_and_another_click_closes_it(window, hockey):
    window.open(hockey.url)
    slot = hockey.frames.tiles[5]
    window.wait_for(
        lambda: window.is_visible(".tile") and not window.pixels(canvas_of(slot))["blank"]
    )
    small = window.pixels(canvas_of(slot))["size"]
    assert not window.is_visible("#closeup")
    window.click(f'.tile[data-slot="{slot}"]')
    assert window.is_visible("#closeup")
    assert window.text("#closeup-title") == f"Slot {slot}"
    assert not window.pixels("#closeup-frame")["blank"], "it starts with the frame of the tile"
    window.wait_for(lambda: hockey.frames.focus == slot)
    # The focused slot is captured at a larger size and more often.
    window.wait_for(lambda: window.pixels("#closeup-frame")["size"][0] > small[0])
    before = window.pixels("#closeup-frame")["hash"]
    window.wait_for(lambda: window.pixels("#closeup-frame")["hash"] != before)
    window.click("#closeup-frame")
    assert not window.is_visible("#closeup")
    window.wait_for(lambda: hockey.frames.focus is None)
    window.click(f'.tile[data-slot="{slot}"]')
    window.click("#closeup-close")
    assert not window.is_visible("#closeup")


def test_the_keyboard_moves_between_tiles_enlarges_and_closes(window, hockey):
    window.open(hockey.url)
    tiles = hockey.frames.tiles
    window.wait_for(lambda: window.is_visible(".tile"))
    for _ in range(20):
        window.press("TAB")
        if focused(window) is not None:
            break
    assert focused(window) == tiles[0]
    window.press("ARROW_RIGHT", "ARROW_RIGHT", "ARROW_LEFT")
    assert focused(window) == tiles[1]
    columns = window.run(
        "return getComputedStyle(document.querySelector('#mosaic'))"
        ".gridTemplateColumns.split(' ').length"
    )
    window.press("ARROW_DOWN")
    assert focused(window) == tiles[1 + columns]
    window.press("END", "ARROW_RIGHT")
    assert focused(window) == tiles[-1]
    window.press("HOME", "ENTER")
    assert window.text("#closeup-title") == f"Slot {tiles[0]}"
    window.press("ARROW_RIGHT")
    assert window.text("#closeup-title") == f"Slot {tiles[1]}"
    window.wait_for(lambda: hockey.frames.focus == tiles[1])
    window.press("ARROW_LEFT", "ARROW_LEFT")
    assert window.text("#closeup-title") == f"Slot {tiles[0]}"
    window.press("ESCAPE")
    assert not window.is_visible("#closeup")
    assert focused(window) == tiles[0]
    window.wait_for(lambda: hockey.frames.focus is None)


def test_leaving_the_page_removes_the_focus(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: window.is_visible(".tile"))
    window.click(".tile")
    window.wait_for(lambda: hockey.frames.focus == hockey.frames.tiles[0])
    window.driver.get("about:blank")
    window.wait_for(lambda: hockey.frames.focus is None)


def test_pause_stops_frames_and_updates_until_resume(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: window.is_visible(".tile") and not window.pixels(canvas_of(0))["blank"])
    window.click("#pause")
    assert window.text("#pause") == "Resume"
    assert window.text("#status") == "paused"
    time.sleep(0.15)  # for responses to earlier requests
    requests, page = frame_requests(window), window.text("main")
    hockey.page.watcher.event_log.add("note", "while it was paused")
    time.sleep(0.75)
    assert frame_requests(window) == requests
    assert window.text("main") == page
    window.click("#pause")
    assert window.text("#pause") == "Pause"
    assert window.text("#status") == "running"
    window.wait_for(lambda: "while it was paused" in window.text("#log"))
    window.wait_for(lambda: frame_requests(window) > requests)


def test_a_hidden_page_requests_and_draws_nothing(window, hockey):
    hide = (
        "Object.defineProperty(document, 'hidden', {get: () => arguments[0], configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    window.open(hockey.url)
    window.wait_for(lambda: frame_requests(window) > 0)
    window.run(hide, True)
    time.sleep(0.15)
    requests, page = frame_requests(window), window.text("main")
    time.sleep(0.75)
    assert frame_requests(window) == requests
    assert window.text("main") == page
    window.run(hide, False)
    window.wait_for(lambda: frame_requests(window) > requests and window.text("main") != page)


def test_the_page_is_drawn_at_most_twice_a_second(window, hockey):
    window.open(hockey.url)
    window.run(
        "window.drawn = 0;"
        "new MutationObserver(() => { drawn += 1; })"
        "  .observe(document.querySelector('#steps'), {childList: true});"
    )
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        hockey.page.watcher.notify()
        time.sleep(0.05)
    assert 1 <= window.run("return drawn") <= 3
