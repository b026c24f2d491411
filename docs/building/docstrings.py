"""An extension of Griffe: docstrings as this project writes them, as Markdown.

References such as ``:func:`shoal.make``` become links where there is something to link to, and
examples with ``>>>`` become blocks of code; what announces a block needs no sign of it here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import griffe

_ROLE = re.compile(r":(?:class|data|func|meth|mod|attr|exc):`(~?)\.?([\w.]+)`")
_LITERAL = re.compile(r"(?<=\S)::$", re.MULTILINE)
_DIRECTIVE = re.compile(r"^[ ]*\.\. code-block:: \w+\n", re.MULTILINE)
_PROMPT = re.compile(r"^(\s*)>>> ")
_SECTION = re.compile(r"[A-Z][a-z]+:$")
_QUOTED = "    "


class Docstrings(griffe.Extension):
    """Rewrites every docstring of a package once the package is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite the docstrings of all that is in the package."""
        for thing in _all_in(pkg):
            if thing.docstring is not None:
                thing.docstring.value = _as_markdown(thing.docstring.value)


def _all_in(thing: griffe.Object) -> Iterator[griffe.Object]:
    yield thing
    for member in thing.members.values():
        if not member.is_alias:
            yield from _all_in(member)


def _as_markdown(text: str) -> str:
    text = _LITERAL.sub(":", _DIRECTIVE.sub("", _ROLE.sub(_link, text)))
    return "\n".join(_with_fences(text.splitlines()))


def _link(found: re.Match[str]) -> str:
    short, path = found.groups()
    shown = path.rpartition(".")[2] if short else path
    return f'<autoref identifier="{path}" optional><code>{shown}</code></autoref>'


def _with_fences(lines: list[str]) -> Iterator[str]:
    """Lines, with a fence around each example: it goes on up to the next empty line."""
    section, indent, fenced = False, "", False
    for line in lines:
        if line and not line[0].isspace():
            section = _SECTION.match(line) is not None
        begins = _PROMPT.match(line)
        if begins and not fenced:
            # What is indented outside of a section would be a block of code without a fence.
            fenced, indent = True, begins[1] if section else ""
            yield f"{indent}```pycon"
        elif fenced and not line.strip():
            yield f"{indent}```"
            fenced = False
        yield line.removeprefix(_QUOTED) if fenced and not section else line
    if fenced:
        yield f"{indent}```"
