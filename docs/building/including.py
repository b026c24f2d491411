"""A hook of MkDocs: what pages include.

``<!-- include CHANGELOG.md -->`` on a line by itself becomes that file of the repository, without
its title where the page has one of its own. Links in it that lead to a file with a page lead to
the page, others become the name of the file. A drawing (``![...](drawing.svg)``) becomes a part of
the page, so that it is light or dark as the page is.

What was measured, ``benchmarks/results``, and the examples are parts of the site as well.
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
EXAMPLES = ROOT / "examples"
PAGES = {
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "examples/README.md": "examples.md",
}

_INCLUDE = re.compile(r"^<!-- include (\S+) -->$", re.MULTILINE)
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)")
_DRAWING = re.compile(r"^!\[([^\]]*)\]\(([\w./-]+\.svg)\)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add what was measured, and a page for each example."""
    for path in sorted([*RESULTS.rglob("*.md"), *RESULTS.rglob("*.png")]):
        place = f"results/{path.relative_to(RESULTS)}"
        files.append(File.generated(config, place, abs_src_path=str(path)))
    for path in sorted(EXAMPLES.rglob("*.py")):
        text = f"# {path.name}\n\n```python\n{path.read_text()}```\n"
        files.append(File.generated(config, _page_of_example(path), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Put in what a page includes."""
    folder = Path(config.docs_dir, page.file.src_uri).parent
    titled = markdown.startswith("# ")
    whole = _INCLUDE.sub(lambda found: _included(found[1], titled), markdown)
    whole = whole.replace("](../benchmarks/results/", "](results/")
    return _DRAWING.sub(lambda found: _drawing(found[1], folder / found[2]), whole)


def _drawing(words: str, file: Path) -> str:
    lines = (line for line in file.read_text().splitlines() if line.strip())
    svg = "\n".join(lines).replace("<svg", f'<svg aria-label="{escape(words)}"', 1)
    return f'<figure class="drawing">\n{svg}\n</figure>'


def _included(name: str, without_title: bool) -> str:
    text = (ROOT / name).read_text()
    if without_title:
        text = text.partition("\n")[2]
    folder = PurePosixPath(name).parent
    return _LINK.sub(lambda found: _link(found[0], *found.groups(), folder), text)


def _link(whole: str, text: str, target: str, folder: PurePosixPath) -> str:
    """A link of an included file, which stands in that folder."""
    if target.startswith("#") or "://" in target:
        return whole
    path, hash_, anchor = target.partition("#")
    file = folder / path
    page = PAGES.get(str(file))
    if page is None and (ROOT / file).is_file():
        if file.parts[0] == "docs":
            page = str(file.relative_to("docs"))
        elif file.parts[0] == "examples" and file.suffix == ".py":
            page = _page_of_example(ROOT / file)
    if page is not None:
        return f"[{text}]({page}{hash_}{anchor})"
    return text if path in text else f"{text} (`{path}`)"


def _page_of_example(path: Path) -> str:
    return f"examples/{path.relative_to(EXAMPLES).with_suffix('.md')}"
