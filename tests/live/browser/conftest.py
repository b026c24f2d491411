"""A browser for the tests of a process, and vectors to look at."""

import importlib.util
import os
import shutil

import pytest

import shoal
from tests.live.browser.background_stepping import FlickeringEnv, Stepping, TrainingShown
from tests.live.browser.browser_window import Window, start_browser


def _needed():
    """The paths of chromium and its driver, or a line that says what is missing."""
    if importlib.util.find_spec("selenium") is None:
        return "the browser's tests need selenium: pip install selenium"
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        return "the browser's tests need chromium: apt-get install chromium chromium-driver"
    return paths


@pytest.fixture(scope="session")
def _window(tmp_path_factory):
    needed = _needed()
    if isinstance(needed, str):
        if os.environ.get("SHOAL_REQUIRE_BROWSER") == "1":
            pytest.fail(needed)
        pytest.skip(needed)
    driver = start_browser(*needed, tmp_path_factory.mktemp("browser"))
    try:
        yield Window(driver, os.environ.get("SHOAL_SCREENSHOTS"))
    finally:
        driver.quit()


@pytest.fixture
def careless_window(_window):
    """A fresh window whose complaints nobody reads, for pages that lose their server."""
    _window.fresh()
    return _window


@pytest.fixture
def window(careless_window):
    """A fresh window; a test that lets the browser complain has failed."""
    yield careless_window
    assert careless_window.errors() == []


@pytest.fixture(scope="module")
def hockey():
    """64 matches, of which 16 are tiles."""
    with Stepping(shoal.make("shoal/HockeyOne-v0", num_envs=64), picture_share=0.08) as stepping:
        yield stepping


@pytest.fixture(scope="module")
def flickering():
    """Four environments whose pictures are known."""
    envs = shoal.make([lambda: FlickeringEnv("rgb_array")] * 4, backend="inline")
    with Stepping(envs, title="FlickeringEnv", picture_share=0.08) as stepping:
        yield stepping


@pytest.fixture(scope="module")
def staffed():
    """Four environments in two worker processes, which may be lost."""
    envs = shoal.make([FlickeringEnv] * 4, backend="process", workers=2, on_crash="restart")
    with Stepping(envs) as stepping:
        yield stepping


@pytest.fixture(scope="module")
def training():
    """A run of training, as its page is told of it."""
    pytest.importorskip("torch")
    with TrainingShown() as shown:
        yield shown
