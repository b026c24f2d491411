"""The mosaic of pictures, and one of them enlarged."""

import time


def asked(window):
    """How often this page has asked for pictures."""
    return window.run(
        "return performance.getEntriesByType('resource')"
        ".filter(({name}) => name.includes('/pictures?')).length"
    )


def focused(window):
    """The slot whose tile has the keyboard, None if none has."""
    slot = window.run("return document.activeElement.dataset.slot ?? null")
    return None if slot is None else int(slot)


def canvas_of(slot):
    return f'.tile[data-slot="{slot}"] canvas'


def test_every_tile_shows_a_picture_that_changes(window, flickering):
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
            lambda slot=slot: window.pixels(canvas_of(slot))["sum"] != first[slot]["sum"]
        )


def test_a_picture_has_the_colours_that_were_rendered(window, flickering):
    window.open(flickering.url)
    window.wait_for(lambda: window.sees(".tile") and not window.pixels(canvas_of(0))["blank"])
    middle = window.pixels(canvas_of(0))["middle"]
    left, right = middle[5 * 4 : 6 * 4], middle[40 * 4 : 41 * 4]
    assert left == [255, 255, 255, 255]
    assert right[0] == right[1] == right[2]
    assert right[0] % 8 == 0
    assert right[3] == 255


def test_of_many_slots_some_are_shown(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: len(window.texts(".tile")) == len(hockey.frames.tiles))
    assert window.texts(".tile") == [str(slot) for slot in hockey.frames.tiles]
    assert window.text("#mosaic-note").startswith("16 of 64")


def test_a_click_enlarges_a_picture_and_another_one_closes_it(window, hockey):
    window.open(hockey.url)
    slot = hockey.frames.tiles[5]
    window.wait_for(lambda: window.sees(".tile") and not window.pixels(canvas_of(slot))["blank"])
    small = window.pixels(canvas_of(slot))["size"]
    assert not window.sees("#closeup")
    window.click(f'.tile[data-slot="{slot}"]')
    assert window.sees("#closeup")
    assert window.text("#closeup-title") == f"Slot {slot}"
    assert not window.pixels("#closeup-picture")["blank"], "it shows at once what the tile shows"
    window.wait_for(lambda: hockey.frames.focus == slot)
    # Who looks at one slot gets larger pictures of it, and more of them.
    window.wait_for(lambda: window.pixels("#closeup-picture")["size"][0] > small[0])
    before = window.pixels("#closeup-picture")["sum"]
    window.wait_for(lambda: window.pixels("#closeup-picture")["sum"] != before)
    window.click("#closeup-picture")
    assert not window.sees("#closeup")
    window.wait_for(lambda: hockey.frames.focus is None)
    window.click(f'.tile[data-slot="{slot}"]')
    window.click("#closeup-close")
    assert not window.sees("#closeup")


def test_the_keyboard_moves_between_pictures_enlarges_and_closes(window, hockey):
    window.open(hockey.url)
    tiles = hockey.frames.tiles
    window.wait_for(lambda: window.sees(".tile"))
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
    assert not window.sees("#closeup")
    assert focused(window) == tiles[0]
    window.wait_for(lambda: hockey.frames.focus is None)


def test_a_page_that_is_left_looks_at_no_slot_any_more(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: window.sees(".tile"))
    window.click(".tile")
    window.wait_for(lambda: hockey.frames.focus == hockey.frames.tiles[0])
    window.driver.get("about:blank")
    window.wait_for(lambda: hockey.frames.focus is None)


def test_pause_stops_pictures_and_numbers_and_the_news_are_there_afterwards(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: window.sees(".tile") and not window.pixels(canvas_of(0))["blank"])
    window.click("#pause")
    assert window.text("#pause") == "Resume"
    assert window.text("#status") == "paused here"
    time.sleep(0.15)  # what was asked for before has come
    requests, page = asked(window), window.text("main")
    hockey.page.watcher.event_log.add("note", "while it was paused")
    time.sleep(0.75)
    assert asked(window) == requests
    assert window.text("main") == page
    window.click("#pause")
    assert window.text("#pause") == "Pause"
    assert window.text("#status") == "running"
    window.wait_for(lambda: "while it was paused" in window.text("#log"))
    window.wait_for(lambda: asked(window) > requests)


def test_a_page_that_nobody_sees_draws_nothing(window, hockey):
    hide = (
        "Object.defineProperty(document, 'hidden', {get: () => arguments[0], configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'));"
    )
    window.open(hockey.url)
    window.wait_for(lambda: asked(window) > 0)
    window.run(hide, True)
    time.sleep(0.15)
    requests, page = asked(window), window.text("main")
    time.sleep(0.75)
    assert asked(window) == requests
    assert window.text("main") == page
    window.run(hide, False)
    window.wait_for(lambda: asked(window) > requests and window.text("main") != page)


def test_it_draws_at_most_twice_a_second(window, hockey):
    window.open(hockey.url)
    window.run(
        "window.drawn = 0;"
        "new MutationObserver(() => { drawn += 1; })"
        "  .observe(document.querySelector('#steps'), {childList: true});"
    )
    end = time.monotonic() + 1.2
    while time.monotonic() < end:
        hockey.page.watcher.tell()  # as if there were news all the time
        time.sleep(0.05)
    assert 1 <= window.run("return drawn") <= 3
