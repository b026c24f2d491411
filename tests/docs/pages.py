"""The pages of the documentation, and the code samples in them.

Comments before a sample, which readers do not see, say how it is tested:

    <!-- setup
    Python code that the samples after it need
    -->
    <!-- slow -->                      this and all later samples run only in `make test-slow`
    <!-- not run: needs EnvPool -->    the next sample is compiled, not run
    <!-- needs: ray torchrl -->        skip the page where one of these modules is missing

A block of JSON with a title becomes a file of that name for the samples after it.
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
    """A block of a page, or the code of a setup comment, whose kind is ``"setup"``."""

    kind: str
    text: str
    line: int
    """The line of the page where the text begins."""
    is_slow: bool = False
    not_run: str = ""
    """The reason, if the sample is not run."""
    title: str = ""


def samples(page: Path) -> Iterator[Sample]:
    """The samples of a page, in order."""
    text = page.read_text()
    slow, not_run = False, ""
    for part in _PART.finditer(text):
        if mark := part["mark"]:
            slow |= mark == "slow"
            not_run = mark.removeprefix("not run: ") if mark != "slow" else not_run
            continue
        group = "setup" if part["setup"] is not None else "text"
        line = text.count("\n", 0, part.start(group)) + 1
        indent = part["indent"] or ""
        body = re.sub(f"^{indent}", "", part[group], flags=re.MULTILINE)
        yield Sample(part["kind"] or group, body, line, slow, not_run, part["title"] or "")
        not_run = ""


def needs(page: Path) -> list[str]:
    """The optional modules that the samples of a page import."""
    return [name for match in _NEEDS.findall(page.read_text()) for name in match.split()]


def name_of(page: Path) -> str:
    """The name of a page in test ids and messages."""
    return str(page.relative_to(ROOT))
