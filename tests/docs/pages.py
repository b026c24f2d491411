"""What a page of the documentation has to be run: its samples, and what they take for granted.

A page says what is to be known of a sample in comments before it, which readers do not see:

    <!-- setup
    what the samples after it take for granted, in Python
    -->
    <!-- slow -->                 run by `make test-slow` only; so are all samples after it
    <!-- not run: needs EnvPool -->        compiled, and nothing more
    <!-- needs: ray torchrl -->            where one of these is missing, the page is left alone

A block of JSON with a title is a file of that name for the samples after it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Sample", "name_of", "needs", "samples"]

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_PART = re.compile(
    r"<!--\s*setup\n(?P<setup>.*?)-->"
    r"|<!--\s*(?P<mark>slow|not run: [^\n]+?)\s*-->"
    r"|^(?P<indent>[ \t]*)```(?P<kind>\w*)"
    r'(?: title="(?P<title>[^"]*)")?[^\n]*\n(?P<text>.*?)^(?P=indent)```[ \t]*$',
    re.DOTALL | re.MULTILINE,
)

_NEEDS = re.compile(r"<!-- needs: ([\w. ]+) -->")


@dataclass(frozen=True)
class Sample:
    """A block of a page, or a comment with what is taken for granted (its kind is ``"setup"``)."""

    kind: str
    text: str
    line: int
    """Of the page, where the text begins."""
    is_slow: bool = False
    not_run: str = ""
    """Why, if it is not."""
    title: str = ""


def samples(page: Path) -> Iterator[Sample]:
    """The samples of a page, in its order."""
    text = page.read_text()
    slow, not_run = False, ""
    for found in _PART.finditer(text):
        if mark := found["mark"]:
            slow |= mark == "slow"
            not_run = mark.removeprefix("not run: ") if mark != "slow" else not_run
            continue
        group = "setup" if found["setup"] is not None else "text"
        line = text.count("\n", 0, found.start(group)) + 1
        indent = found["indent"] or ""
        body = re.sub(f"^{indent}", "", found[group], flags=re.MULTILINE)
        yield Sample(found["kind"] or group, body, line, slow, not_run, found["title"] or "")
        not_run = ""


def needs(page: Path) -> list[str]:
    """The modules without which a page cannot be run, besides those that all tests need."""
    return [name for found in _NEEDS.findall(page.read_text()) for name in found.split()]


def name_of(page: Path) -> str:
    """How a test names a page."""
    return str(page.relative_to(ROOT))
