"""The appearance of the page: themes, sizes, contrast, animations, accessible names."""

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
const background = (element) => {
  for (let ancestor = element; ancestor; ancestor = ancestor.parentElement) {
    const color = parts(getComputedStyle(ancestor).backgroundColor);
    if (color[3] === undefined || color[3] === 1) return color.slice(0, 3);
  }
  return [255, 255, 255];
};
const contrast = (element) => {
  const {fill, color} = getComputedStyle(element);
  const text = luminance(parts(element.closest("svg") ? fill : color).slice(0, 3));
  const behind = luminance(background(element));
  return (Math.max(text, behind) + 0.05) / (Math.min(text, behind) + 0.05);
};
const contrasts = [];
const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode.data.trim();
  const element = texts.currentNode.parentElement;
  const isVisible = element.checkVisibility({visibilityProperty: true});
  if (text && isVisible && !element.closest(".visually-hidden"))
    contrasts.push([contrast(element), text]);
}
return contrasts;
"""


def background(window):
    return window.run("return getComputedStyle(document.body).backgroundColor")


def choose(window, theme):
    window.click(f'#theme label:has([value="{theme}"])')


def chosen_theme(window):
    return window.run("return document.querySelector('#theme input:checked').value")


def test_the_theme_is_that_of_the_system_by_default(window, training):
    window.open(training.url)
    assert chosen_theme(window) == "system"
    window.set_preferences(prefers_color_scheme="dark")
    assert background(window) == DARK
    window.set_preferences(prefers_color_scheme="light")
    assert background(window) == LIGHT
    choose(window, "dark")
    assert background(window) == DARK
    choose(window, "system")
    assert background(window) == LIGHT


def test_the_chosen_theme_is_stored(window, training):
    window.open(training.url)
    window.set_preferences(prefers_color_scheme="light")
    choose(window, "dark")
    window.open(training.url)
    assert chosen_theme(window) == "dark"
    assert background(window) == DARK


def test_a_theme_can_be_chosen_without_storage(window, training):
    window.run_before_every_page(
        "Object.defineProperty(window, 'localStorage', {"
        "  get() { throw new DOMException('no', 'SecurityError'); }"
        "});"
    )
    window.set_preferences(prefers_color_scheme="light")
    window.open(training.url)
    choose(window, "dark")
    assert background(window) == DARK
    window.open(training.url)
    assert chosen_theme(window) == "system"
    assert background(window) == LIGHT


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_all_elements_fit_and_have_enough_contrast(window, training, size, theme, request):
    window.resize(*size)
    window.set_preferences(prefers_color_scheme=theme)
    window.open(training.url)
    window.wait_for(
        lambda: window.is_visible("#training") and window.is_visible(".tile:not(.waiting)")
    )
    window.wait_for(lambda: len(window.texts("#return-chart .axes text")) > 1)
    scroll_width, client_width = window.run(
        "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert scroll_width <= client_width
    cut_off = window.run(
        "return [...document.querySelectorAll('.panel, .panel h2, dd, .tile, .button, .chart')]"
        ".filter(element => element.checkVisibility()"
        "  && (element.getBoundingClientRect().right > innerWidth"
        "  || element.scrollWidth > element.clientWidth + 1)).map(element => element.outerHTML)"
    )
    assert cut_off == []
    contrasts = window.run(CONTRASTS)
    assert len(contrasts) > 60
    assert [(ratio, text) for ratio, text in contrasts if ratio < 4.5] == []
    window.screenshot(f"{request.node.callspec.id}")
    window.click(".tile")
    window.screenshot(f"{request.node.callspec.id}-closeup")
    box = window.run("return document.querySelector('#closeup').getBoundingClientRect().toJSON()")
    assert box["left"] >= 0
    assert box["right"] <= size[0]
    assert box["top"] >= 0
    assert box["bottom"] <= size[1]


def test_nothing_is_animated_if_reduced_motion_is_preferred(window, training):
    animations = "return document.getAnimations().length"
    dot = "return getComputedStyle(document.querySelector('#status'), '::before').opacity"
    window.open(training.url)
    window.wait_for(lambda: window.run(dot) != "1")
    training.page.note("a new event")
    window.wait_for(lambda: window.run(animations) > 0)
    window.set_preferences(prefers_reduced_motion="reduce")
    steps = window.number("#steps")
    while window.number("#steps") == steps:
        assert window.run(animations) == 0
        assert window.run(dot) == "1"


def test_all_controls_have_accessible_names(window, training):
    window.open(training.url)
    window.wait_for(lambda: window.is_visible(".tile"))
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
