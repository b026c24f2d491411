"""Takes the pictures of the live page: a run of hockey, after most of a minute, light and dark.

    PYTHONPATH=. .venv/bin/python docs/building/screenshots.py

It takes Debian's chromium and chromium-driver, as the tests of the page do.
"""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from shoal.live._training_page import TrainingPage
from shoal.train import train_single_run
from tests.live.browser.browser_window import start_browser

PICTURES = Path(__file__).parents[1] / "pictures"
SIZE = (1280, 1000)
SECONDS = 40


def look(url: str) -> None:
    """Open the page, wait until there is much to see, and keep what it looks like."""
    paths = [shutil.which(name) for name in ("chromium", "chromedriver")]
    with tempfile.TemporaryDirectory() as folder:
        driver: Any = start_browser(*paths, folder)
        try:
            driver.set_window_size(*SIZE)
            driver.get(url)
            time.sleep(SECONDS)
            for scheme in ("light", "dark"):
                features = [{"name": "prefers-color-scheme", "value": scheme}]
                driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
                time.sleep(1.5)
                driver.save_screenshot(str(PICTURES / f"live-{scheme}.png"))
        finally:
            driver.quit()


def main() -> None:
    """Train, and look."""
    page = TrainingPage(port=0, picture_share=0.05)
    looking = threading.Thread(target=look, args=(page.url,))
    looking.start()
    with tempfile.TemporaryDirectory() as folder:
        train_single_run("hockey_demo", folder, "hockey", device="cpu", seed=0, displays=[page])
    looking.join()


if __name__ == "__main__":
    main()
