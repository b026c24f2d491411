"""A browser that all tests of a process share, and pages to open."""

import importlib.util
import os
import shutil

import pytest

import shoal
from tests.live.browser.background_stepping import FakeTraining, FlickeringEnv, SteppedVector
from tests.live.browser.browser_window import Window, start_browser


def _browser_paths():
    """Return the paths of chromium and its driver, or a message about what is missing."""
    if importlib.util.find_spec("selenium") is None:
        return "the browser's tests need selenium: pip install selenium"
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    if None in paths:
        return "the browser's tests need chromium: apt-get install chromium chromium-driver"
    return paths


@pytest.fixture(scope="session")
def _window(tmp_path_factory):
    paths = _browser_paths()
    if isinstance(paths, str):
        if os.environ.get("SHOAL_REQUIRE_BROWSER") == "1":
            pytest.fail(paths)
        pytest.skip(paths)
    driver = start_browser(*paths, tmp_path_factory.mktemp("browser"))
    try:
        yield Window(driver, os.environ.get("SHOAL_SCREENSHOTS"))
    finally:
        driver.quit()


@pytest.fixture
def unchecked_window(_window):
    """A window whose errors are ignored, for pages that lose their server."""
    _window.reset()
    return _window


@pytest.fixture
def window(unchecked_window):
    """A window; the test fails if the browser reports an error."""
    yield unchecked_window
    assert unchecked_window.errors() == []


@pytest.fixture(scope="module")
def hockey():
    """64 matches of hockey, of which 16 are tiles."""
    envs = shoal.make("shoal/HockeyOne-v0", num_envs=64)
    with SteppedVector(envs, picture_share=0.08) as stepped:
        yield stepped


@pytest.fixture(scope="module")
def flickering():
    """Four environments that render known images."""
    envs = shoal.make([lambda: FlickeringEnv("rgb_array")] * 4, backend="inline")
    with SteppedVector(envs, title="FlickeringEnv", picture_share=0.08) as stepped:
        yield stepped


@pytest.fixture(scope="module")
def in_processes():
    """Four environments in two worker processes, which are restarted after a crash."""
    envs = shoal.make([FlickeringEnv] * 4, backend="process", workers=2, on_crash="restart")
    with SteppedVector(envs) as stepped:
        yield stepped


@pytest.fixture(scope="module")
def training():
    """The page of a training run."""
    pytest.importorskip("torch")
    with FakeTraining() as shown:
        yield shown
