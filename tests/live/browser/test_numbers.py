"""The numbers and charts of the page."""

import json
import re

import shoal
import shoal.live
from tests.live.browser.background_stepping import FlickeringEnv, SteppedVector
from tests.live.browser.browser_window import GAP, MINUS, UNKNOWN

FORMATTED = {
    "compact(45213)": "45.2 k",
    "compact(999960)": "1.00 M",
    "compact(0)": "0",
    "compact(null)": "-",
    "mark(20000)": "20 k",
    "mark(-2.5)": "-2.5",
    "mark(100)": "100",
    "whole(1234567)": "1 234 567",
    "whole(123)": "123",
    "figure(21.54)": "21.5",
    "figure(9.996)": "10.0",
    "figure(0.00012)": "1.2e-4",
    "figure(-1234.4)": "-1234",
    "span(1.2e-5)": "12.0 µs",
    "span(0.00099996)": "1.00 ms",
    "span(2.5)": "2.50 s",
    "spanMark(1e-5)": "10 µs",
    "clock(65)": "1:05",
    "clock(3905)": "1:05:05",
    "percent(0.834)": "83 %",
    "percent(0.0081)": "0.8 %",
    "slotRange([0, 31])": "0-31",
    "slotRange([5, 5])": "5",
    "several(1, 'restart')": "1 restart",
    "several(1200, 'restart')": "1 200 restarts",
}


def test_the_numbers_change_while_the_vector_is_stepped(window, hockey):
    window.open(hockey.url)
    assert window.text("#title") == "shoal/HockeyOne-v0"
    assert window.text("#plan") == str(hockey.envs.plan)
    assert window.number("#slots") == 64
    before = {name: window.number(f"#{name}") for name in ("steps", "batches", "episodes")}
    for name, number in before.items():
        window.wait_for(lambda name=name, number=number: window.number(f"#{name}") > number)
    assert window.text("#status") == "running"
    window.wait_for(lambda: window.number("#rate") > 100)
    window.wait_for(lambda: window.number("#return-length") > 1)
    assert 0 < window.number("#cost") < 50


def test_the_numbers_equal_those_of_the_vector(window):
    with SteppedVector(shoal.make([FlickeringEnv] * 2, backend="inline")) as stepping:
        window.open(stepping.url)
        # An episode has 30 steps with a reward of 1.
        window.wait_for(lambda: window.number("#return-mean") == 30)
        assert window.number("#return-length") == 30
        stepping.halt()
        state = stepping.page.watcher.state()
        window.wait_for(lambda: window.number("#batches") == state["batches"])
        assert window.number("#steps") == state["steps"] == 2 * state["batches"]
        window.wait_for(lambda: window.text("#status") == "waiting for a batch")


def test_the_layout_is_stable_while_the_numbers_change(window, hockey):
    def positions():
        return window.run(
            "return [...document.querySelectorAll('.panel, dd, h2, .tile')]"
            ".map(element => element.getBoundingClientRect())"
            ".map(({x, y, width}) => [x, y, width])"
        )

    window.open(hockey.url)
    window.wait_for(lambda: window.text("#return-mean") != UNKNOWN)
    before, steps = positions(), window.number("#steps")
    window.wait_for(lambda: window.number("#steps") > steps)
    assert positions() == before


def test_batch_times_are_in_order(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: window.text("#time-p99") != UNKNOWN)
    units = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1}

    def seconds(name):
        value, unit = window.text(f"#time-{name}").split(GAP)
        return float(value) * units[unit]

    times = [seconds(name) for name in ("median", "p90", "p99", "longest")]
    assert times == sorted(times)
    assert times[0] > 0
    lines = [
        float(window.attribute(f"#times-chart .{name}", "x1")) for name in ("median", "p90", "p99")
    ]
    assert lines == sorted(lines)
    assert window.attribute("#times-chart .bars", "d").count("M") > 2


def test_charts_show_the_value_at_the_pointer(window, hockey):
    window.open(hockey.url)
    for chart, pattern in (
        ("rate", r" at \d+:\d\d$"),
        ("return", r" to .* at .*steps$"),
        ("times", r" to .*s: \d"),
    ):
        drawn = f"#{chart}-chart .axes text"
        window.wait_for(lambda drawn=drawn: len(window.texts(drawn)) > 2)
        assert not window.is_visible(f"#{chart}-chart .probe")
        window.point_at(f"#{chart}-chart")
        assert re.search(pattern, window.text(f"#{chart}-chart .probe text"))
        assert window.attribute(f"#{chart}-chart svg", "aria-label") != "no data yet"


def test_no_values_are_shown_before_the_first_step(window):
    with shoal.make([FlickeringEnv] * 2, backend="inline") as envs:
        window.open(shoal.live.show(envs, port=0).url)
        assert window.text("#status") == "waiting for a batch"
        assert window.text("#rate") == UNKNOWN
        assert window.text("#steps") == "0"
        assert window.text("#return-mean") == UNKNOWN
        assert window.text("#time-median") == UNKNOWN
        for chart in ("rate", "return", "times"):
            assert window.texts(f"#{chart}-chart text") == ["no data yet"]
        window.driver.get("about:blank")


def test_number_formats(window, hockey):
    window.driver.get(hockey.url)
    results = window.driver.execute_async_script(
        "const [calls, done] = arguments;"
        "import('./format.js').then(formats =>"
        "  done(calls.map(([name, args]) => formats[name](...args))));",
        [_call(expression) for expression in FORMATTED],
    )
    plain = str.maketrans({GAP: " ", MINUS: "-", UNKNOWN: "-"})
    assert [text.translate(plain) for text in results] == list(FORMATTED.values())


def test_without_training_there_is_no_training_panel(window, hockey):
    window.open(hockey.url)
    window.wait_for(lambda: window.number("#steps"))
    assert not window.is_visible("#training")
    assert not window.is_visible("#wins")


def _call(expression):
    name, _, arguments = expression.rstrip(")").partition("(")
    return name, json.loads(f"[{arguments}]".replace("'", '"'))
