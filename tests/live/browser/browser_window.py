"""A window of a real browser that shows a live page."""

import base64
import re
import time
from math import nan
from pathlib import Path
from urllib.parse import urlsplit

OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

DESKTOP = (1440, 900)
PHONE = (360, 740)

TIMEOUT = 10

MINUS = "\N{MINUS SIGN}"
GAP = "\N{NARROW NO-BREAK SPACE}"
UNKNOWN = "\N{EN DASH}"

# The visible elements that match a selector, and their texts. SVG elements have no innerText.
_VISIBLE = (
    "[...document.querySelectorAll(arguments[0])]"
    ".filter(element => element.checkVisibility({visibilityProperty: true}))"
)
_TEXTS = f"{_VISIBLE}.map(element => (element.innerText ?? element.textContent).trim())"

_PIXELS = """
const canvas = document.querySelector(arguments[0]);
const {width, height} = canvas;
const copy = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
copy.drawImage(canvas, 0, 0);
const {data} = copy.getImageData(0, 0, width, height);
const pixels = new Uint32Array(data.buffer);
let hash = 0;
for (const pixel of pixels) hash = (hash * 31 + pixel) % 1000000007;
const blank = pixels.every(pixel => pixel === pixels[0]);
const middle = [...data.slice((height >> 1) * width * 4, ((height >> 1) + 1) * width * 4)];
return {size: [width, height], hash, blank, middle};
"""


def start_browser(chromium, chromedriver, folder):
    """Start chromium with an empty profile in this folder."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*OPTIONS, f"--user-data-dir={folder}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))


class Window:
    """A browser window, used like a person would."""

    def __init__(self, driver, folder):
        self.driver = driver
        self._folder = folder
        self._origins = set()
        self._scripts = []
        self._width, _ = DESKTOP

    def reset(self):
        """Restore the initial state: empty storage, desktop size, no preferences."""
        for script in self._scripts:
            self.command("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        self._scripts.clear()
        while self._origins:
            origin = self._origins.pop()
            self.command("Storage.clearDataForOrigin", origin=origin, storageTypes="local_storage")
        self.resize(*DESKTOP)
        self.set_preferences()
        self.driver.get("about:blank")
        self.errors()

    def open(self, url):
        """Open a page, and wait for its first state."""
        self._origins.add("{0.scheme}://{0.netloc}".format(urlsplit(url)))
        self.driver.get(url)
        self.wait_for(lambda: self.text("#status") not in ("", "connecting"))

    def command(self, name, **arguments):
        """Execute a command of the Chrome DevTools Protocol."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def run_before_every_page(self, script):
        result = self.command("Page.addScriptToEvaluateOnNewDocument", source=script)
        self._scripts.append(result["identifier"])

    def resize(self, width, height):
        self._width = width
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if width == PHONE[0] else 1,
            mobile=width == PHONE[0],
        )

    def set_preferences(self, **features):
        """Set media features, as in ``prefers_color_scheme="dark"``."""
        media = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.command("Emulation.setEmulatedMedia", features=media)

    def errors(self):
        """Return the errors and warnings of the browser since the last call."""
        return [entry for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def text(self, selector):
        """Return the text of the first visible element, or "" if there is none."""
        return self.run(f"return {_TEXTS}[0] ?? ''", selector)

    def texts(self, selector):
        """Return the text of each visible element."""
        return self.run(f"return {_TEXTS}", selector)

    def number(self, selector):
        """Return the number that an element shows, with its prefix applied; nan if none."""
        text = self.text(selector).replace(MINUS, "-")
        match = re.match(rf"-?[\d{GAP}]+(\.\d+)?", text)
        if not match:
            return nan
        factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[match.end() :].strip(GAP), 1)
        return float(match[0].replace(GAP, "")) * factor

    def attribute(self, selector, name):
        return self.run(
            "return document.querySelector(arguments[0]).getAttribute(arguments[1])", selector, name
        )

    def is_visible(self, selector):
        return self.run(f"return {_VISIBLE}.length > 0", selector)

    def click(self, selector):
        self.driver.find_element("css selector", selector).click()

    def point_at(self, selector):
        """Move the mouse to the center of an element."""
        from selenium.webdriver import ActionChains

        element = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", element)
        ActionChains(self.driver, duration=0).move_to_element(element).perform()

    def press(self, *keys):
        """Press keys by their names, as in ``press("ENTER")``."""
        from selenium.webdriver import ActionChains, Keys

        actions = ActionChains(self.driver, duration=0)
        for key in keys:
            actions.send_keys(getattr(Keys, key))
        actions.perform()

    def pixels(self, selector):
        """Return the size and a hash of a canvas, whether it is blank, and its middle row."""
        return self.run(_PIXELS, selector)

    def wait_for(self, condition, seconds=TIMEOUT):
        """Wait until the condition is true, and return its value."""
        end = time.monotonic() + seconds
        while not (result := condition()):
            if time.monotonic() > end:
                raise TimeoutError(
                    f"the condition is false after {seconds} s; the page shows:\n{self.page_text()}"
                )
            time.sleep(0.03)
        return result

    def page_text(self):
        return self.run("return document.body?.innerText ?? ''")

    def screenshot(self, name):
        """Save an image of the whole page, if a folder was given."""
        if self._folder is None:
            return
        height = self.run("return innerHeight")
        full_height = self.run("return document.documentElement.scrollHeight")
        self.resize(self._width, height if self.is_visible("dialog") else full_height)
        content = self.command("Page.captureScreenshot", format="png")
        self.resize(self._width, height)
        folder = Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.png").write_bytes(base64.b64decode(content["data"]))
