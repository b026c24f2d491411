"""Take screenshots of the live page, in both themes, 40 seconds into a training run of hockey.

    PYTHONPATH=. .venv/bin/python docs/building/screenshots.py

Requires Debian's packages chromium and chromium-driver, as the browser tests do.
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


def take_screenshots(url: str) -> None:
    """Open the page, wait, and save a screenshot of each theme."""
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
    """Train, and take screenshots meanwhile."""
    page = TrainingPage(port=0, picture_share=0.05)
    browser = threading.Thread(target=take_screenshots, args=(page.url,))
    browser.start()
    with tempfile.TemporaryDirectory() as folder:
        train_single_run("hockey_demo", folder, "hockey", device="cpu", seed=0, displays=[page])
    browser.join()


if __name__ == "__main__":
    main()
