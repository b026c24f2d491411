"""A live page in a real browser: what can be seen of it, and done to it."""

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

PATIENCE = 10

MINUS = "\N{MINUS SIGN}"
GAP = "\N{NARROW NO-BREAK SPACE}"
UNKNOWN = "\N{EN DASH}"

# Of the elements found: those that can be seen, and their texts; a drawing's has no innerText.
_SEEN = (
    "[...document.querySelectorAll(arguments[0])]"
    ".filter(one => one.checkVisibility({visibilityProperty: true}))"
)
_TEXTS = f"{_SEEN}.map(one => (one.innerText ?? one.textContent).trim())"

_PIXELS = """
const shown = document.querySelector(arguments[0]);
const {width, height} = shown;
const copy = new OffscreenCanvas(width, height).getContext('2d', {willReadFrequently: true});
copy.drawImage(shown, 0, 0);
const {data} = copy.getImageData(0, 0, width, height);
const pixels = new Uint32Array(data.buffer);
let sum = 0;
for (const pixel of pixels) sum = (sum * 31 + pixel) % 1000000007;
const blank = pixels.every(one => one === pixels[0]);
const middle = [...data.slice((height >> 1) * width * 4, ((height >> 1) + 1) * width * 4)];
return {size: [width, height], sum, blank, middle};
"""


def start_browser(chromium, chromedriver, folder):
    """A chromium that knows nothing, in this empty folder."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for option in (*OPTIONS, f"--user-data-dir={folder}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(chromedriver))


class Window:
    """The window of a browser, as its user sees it."""

    def __init__(self, driver, folder):
        self.driver = driver
        self._folder = folder
        self._origins = set()
        self._before = []
        self._width, _ = DESKTOP

    def fresh(self):
        """Make it as it was at the start: nothing remembered, a desktop, nothing preferred."""
        for script in self._before:
            self.command("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        self._before.clear()
        while self._origins:
            origin = self._origins.pop()
            self.command("Storage.clearDataForOrigin", origin=origin, storageTypes="local_storage")
        self.resize(*DESKTOP)
        self.prefer()
        self.driver.get("about:blank")
        self.errors()

    def open(self, url):
        """Look at a page, and wait for its first news."""
        self._origins.add("{0.scheme}://{0.netloc}".format(urlsplit(url)))
        self.driver.get(url)
        self.wait_for(lambda: self.text("#status") not in ("", "connecting"))

    def command(self, name, **arguments):
        """One of the browser's own commands, as for its developer tools."""
        return self.driver.execute_cdp_cmd(name, arguments)

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def before_every_page(self, script):
        found = self.command("Page.addScriptToEvaluateOnNewDocument", source=script)
        self._before.append(found["identifier"])

    def resize(self, width, height):
        self._width = width
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=2 if width == PHONE[0] else 1,
            mobile=width == PHONE[0],
        )

    def prefer(self, **features):
        """What the user's system prefers, as in ``prefers_color_scheme="dark"``."""
        named = [
            {"name": name.replace("_", "-"), "value": value} for name, value in features.items()
        ]
        self.command("Emulation.setEmulatedMedia", features=named)

    def errors(self):
        """What the browser has complained about since the last call."""
        return [entry for entry in self.driver.get_log("browser") if entry["level"] != "INFO"]

    def text(self, selector):
        """The text of the first one that can be seen, and "" where none can."""
        return self.run(f"return {_TEXTS}[0] ?? ''", selector)

    def texts(self, selector):
        """The text of each one that can be seen."""
        return self.run(f"return {_TEXTS}", selector)

    def number(self, selector):
        """A number as it stands there, with its prefix taken into account; nan where none is."""
        text = self.text(selector).replace(MINUS, "-")
        found = re.match(rf"-?[\d{GAP}]+(\.\d+)?", text)
        if not found:
            return nan
        factor = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[found.end() :].strip(GAP), 1)
        return float(found[0].replace(GAP, "")) * factor

    def attribute(self, selector, name):
        return self.run(
            "return document.querySelector(arguments[0]).getAttribute(arguments[1])", selector, name
        )

    def sees(self, selector):
        return self.run(f"return {_SEEN}.length > 0", selector)

    def click(self, selector):
        self.driver.find_element("css selector", selector).click()

    def point_at(self, selector):
        """Move the mouse to its middle."""
        from selenium.webdriver import ActionChains

        place = self.driver.find_element("css selector", selector)
        self.run("arguments[0].scrollIntoView({block: 'center'})", place)
        ActionChains(self.driver, duration=0).move_to_element(place).perform()

    def press(self, *keys):
        """Keys by their names, as in ``press("ENTER")``."""
        from selenium.webdriver import ActionChains, Keys

        actions = ActionChains(self.driver, duration=0)
        for key in keys:
            actions.send_keys(getattr(Keys, key))
        actions.perform()

    def pixels(self, selector):
        """What a canvas shows.

        Its size, a sum that tells two pictures apart, whether it is blank, and its middle row.
        """
        return self.run(_PIXELS, selector)

    def wait_for(self, condition, seconds=PATIENCE):
        """Wait until this is true, and return what it was then."""
        end = time.monotonic() + seconds
        while not (found := condition()):
            if time.monotonic() > end:
                raise TimeoutError(
                    f"still not so after {seconds} s; the page says:\n{self.everything()}"
                )
            time.sleep(0.03)
        return found

    def everything(self):
        return self.run("return document.body?.innerText ?? ''")

    def picture(self, name):
        """Keep a picture of the whole page, where pictures are wanted."""
        if self._folder is None:
            return
        height = self.run("return innerHeight")
        whole = self.run("return document.documentElement.scrollHeight")
        self.resize(self._width, height if self.sees("dialog") else whole)
        content = self.command("Page.captureScreenshot", format="png")
        self.resize(self._width, height)
        folder = Path(self._folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name}.png").write_bytes(base64.b64decode(content["data"]))
