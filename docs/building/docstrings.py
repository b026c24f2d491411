"""A Griffe extension that converts the project's docstrings to Markdown.

References such as ``:func:`shoal.make``` become links if their target exists, examples with ``>>>``
become code blocks, and the markup that introduces a block is removed.
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
    """Rewrites all docstrings of a package when the package is loaded."""

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Rewrite the docstrings of a package and its members."""
        for documented in _with_members(pkg):
            if documented.docstring is not None:
                documented.docstring.value = _as_markdown(documented.docstring.value)


def _with_members(documented: griffe.Object) -> Iterator[griffe.Object]:
    yield documented
    for member in documented.members.values():
        if not member.is_alias:
            yield from _with_members(member)


def _as_markdown(text: str) -> str:
    text = _LITERAL.sub(":", _DIRECTIVE.sub("", _ROLE.sub(_link, text)))
    return "\n".join(_with_fences(text.splitlines()))


def _link(match: re.Match[str]) -> str:
    short, path = match.groups()
    shown = path.rpartition(".")[2] if short else path
    return f'<autoref identifier="{path}" optional><code>{shown}</code></autoref>'


def _with_fences(lines: list[str]) -> Iterator[str]:
    """Put a fence around each example, which ends at the next empty line."""
    section, indent, fenced = False, "", False
    for line in lines:
        if line and not line[0].isspace():
            section = _SECTION.match(line) is not None
        prompt = _PROMPT.match(line)
        if prompt and not fenced:
            # Outside of a section, indented lines would be a code block without a fence.
            fenced, indent = True, prompt[1] if section else ""
            yield f"{indent}```pycon"
        elif fenced and not line.strip():
            yield f"{indent}```"
            fenced = False
        yield line.removeprefix(_QUOTED) if fenced and not section else line
    if fenced:
        yield f"{indent}```"
