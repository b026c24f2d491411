"""A hook of MkDocs: what pages include.

``<!-- include CHANGELOG.md -->`` on a line by itself becomes that file of the repository, without
its title where the page has one of its own. Links in it that lead to a file with a page lead to
the page, others become the name of the file. A drawing (``![...](drawing.svg)``) becomes a part of
the page, so that it is light or dark as the page is.

What was measured, ``benchmarks/results``, is a part of the site as well.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
PAGES = {name: f"{name.lower()}.md" for name in ("ARCHITECTURE", "CHANGELOG", "CONTRIBUTING")}

_INCLUDE = re.compile(r"^<!-- include (\S+) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_DRAWING = re.compile(r"^!\[([^\]]*)\]\(([\w./-]+\.svg)\)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add what was measured."""
    for path in sorted([*RESULTS.rglob("*.md"), *RESULTS.rglob("*.png")]):
        place = f"results/{path.relative_to(RESULTS)}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Put in what a page includes."""
    folder = Path(page.file.abs_src_path).parent
    titled = markdown.startswith("# ")
    whole = _INCLUDE.sub(lambda found: _adapted((ROOT / found[1]).read_text(), titled), markdown)
    whole = whole.replace("](../benchmarks/results/", "](results/")
    return _DRAWING.sub(lambda found: _drawing(found[1], folder / found[2]), whole)


def _drawing(words: str, file: Path) -> str:
    lines = (line for line in file.read_text().splitlines() if line.strip())
    svg = "\n".join(lines).replace("<svg", f'<svg aria-label="{escape(words)}"', 1)
    return f'<figure class="drawing">\n{svg}\n</figure>'


def _adapted(text: str, without_title: bool) -> str:
    if without_title:
        text = text.partition("\n")[2]
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
