"""A hook of MkDocs: pages whose text stands at the top of the repository.

``<!-- include CHANGELOG.md -->`` on a line by itself becomes that file. Links in it that lead to a
file with a page lead to the page, others become the name of the file.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).parents[2]
PAGES = {name: f"{name.lower()}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")}

_INCLUDE = re.compile(r"^<!-- include (\S+) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put in what a page includes."""
    return _INCLUDE.sub(lambda found: _adapted((ROOT / found[1]).read_text()), markdown)


def _adapted(text: str) -> str:
    return _LINK.sub(lambda found: _link(found[0], *found.groups()), text)


def _link(whole: str, text: str, target: str) -> str:
    if target.startswith("#") or "://" in target:
        return whole
    path, hash_, anchor = target.partition("#")
    file = PurePosixPath(path)
    if file.suffix == ".md" and str(file.with_suffix("")) in PAGES:
        return f"[{text}]({PAGES[file.stem]}{hash_}{anchor})"
    if file.parts[0] == "docs" and (ROOT / file).is_file():
        return f"[{text}]({file.relative_to('docs')}{hash_}{anchor})"
    return text if path in text else f"{text} (`{path}`)"
