"""How the page looks: themes, widths, contrast, motion, names."""

import pytest

from tests.live.browser.browser_window import DESKTOP, PHONE

LIGHT, DARK = "rgb(242, 245, 246)", "rgb(11, 17, 21)"

CONTRASTS = """
const linear = (part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
const luminance = (color) => {
  const [r, g, b] = color.map((part) => linear(part / 255));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const parts = (color) => color.match(/[\\d.]+/g).map(Number);
const ground = (element) => {
  for (let one = element; one; one = one.parentElement) {
    const color = parts(getComputedStyle(one).backgroundColor);
    if (color[3] === undefined || color[3] === 1) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
const contrast = (element) => {
  const {fill, color} = getComputedStyle(element);
  const text = luminance(parts(element.closest("svg") ? fill : color).slice(0, 3));
  const behind = luminance(ground(element));
  return (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
};
const found = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode.data.trim();
  const element = texts.currentNode.parentElement;
  const seen = element.checkVisibility({visibilityProperty: true}) && !element.closest(".unseen");
  if (text && seen) found.push([contrast(element), text]);
}
return found;
"""


def ground(window):
    return window.run("return getComputedStyle(document.body).backgroundColor")


def choose(window, theme):
    window.click(f'#theme label:has([value="{theme}"])')


def chosen(window):
    return window.run("return document.querySelector('#theme input:checked').value")


def test_the_theme_follows_the_system_until_one_is_chosen(window, training):
    window.open(training.url)
    assert chosen(window) == "system"
    window.prefer(prefers_color_scheme="dark")
    assert ground(window) == DARK
    window.prefer(prefers_color_scheme="light")
    assert ground(window) == LIGHT
    choose(window, "dark")
    assert ground(window) == DARK
    choose(window, "system")
    assert ground(window) == LIGHT


def test_the_chosen_theme_is_remembered(window, training):
    window.open(training.url)
    window.prefer(prefers_color_scheme="light")
    choose(window, "dark")
    window.open(training.url)
    assert chosen(window) == "dark"
    assert ground(window) == DARK


def test_a_theme_can_be_chosen_where_nothing_may_be_remembered(window, training):
    window.before_every_page(
        "Object.defineProperty(window, 'localStorage', {"
        "  get() { throw new DOMException('no', 'SecurityError'); }"
        "});"
    )
    window.prefer(prefers_color_scheme="light")
    window.open(training.url)
    choose(window, "dark")
    assert ground(window) == DARK
    window.open(training.url)
    assert chosen(window) == "system"
    assert ground(window) == LIGHT


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_everything_fits_and_can_be_read(window, training, size, theme, request):
    window.resize(*size)
    window.prefer(prefers_color_scheme=theme)
    window.open(training.url)
    window.wait_for(lambda: window.sees("#training") and window.sees(".tile:not(.waiting)"))
    window.wait_for(lambda: len(window.texts("#return-chart .axes text")) > 1)
    wide, seen = window.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= seen
    hidden = window.run(
        "return [...document.querySelectorAll('.panel, .panel h2, dd, .tile, .button, .chart')]"
        ".filter(one => one.checkVisibility() && (one.getBoundingClientRect().right > innerWidth"
        "  || one.scrollWidth > one.clientWidth + 1)).map(one => one.outerHTML)"
    )
    assert hidden == []
    contrasts = window.run(CONTRASTS)
    assert len(contrasts) > 60
    assert [(ratio, text) for ratio, text in contrasts if ratio < 4.5] == []
    window.picture(f"{request.node.callspec.id}")
    window.click(".tile")
    window.picture(f"{request.node.callspec.id}-closeup")
    box = window.run("return document.querySelector('#closeup').getBoundingClientRect().toJSON()")
    assert box["left"] >= 0
    assert box["right"] <= size[0]
    assert box["top"] >= 0
    assert box["bottom"] <= size[1]


def test_nothing_moves_by_itself_for_who_wants_no_motion(window, training):
    moving = "return document.getAnimations().length"
    dot = "return getComputedStyle(document.querySelector('#status'), '::before').opacity"
    window.open(training.url)
    window.wait_for(lambda: window.run(dot) != "1")
    training.page.note("something new lights up")
    window.wait_for(lambda: window.run(moving) > 0)
    window.prefer(prefers_reduced_motion="reduce")
    steps = window.number("#steps")
    while window.number("#steps") == steps:
        assert window.run(moving) == 0
        assert window.run(dot) == "1"


def test_whatever_the_keyboard_reaches_has_a_name(window, training):
    window.open(training.url)
    window.wait_for(lambda: window.sees(".tile"))
    window.click(".tile")
    nodes = window.command("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "radio", "meter", "progressbar", "dialog", "region", "image", "table"}
    for open_dialog in (True, False):
        named = [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in nodes
            if not node["ignored"] and node.get("role", {}).get("value") in roles
        ]
        assert len(named) > (3 if open_dialog else 10)
        assert [role for role, name in named if not name and role != "table"] == []
        if open_dialog:
            window.press("ESCAPE")
            nodes = window.command("Accessibility.getFullAXTree")["nodes"]
