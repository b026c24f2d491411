"""A MkDocs hook that includes files of the repository in pages.

``<!-- include CHANGELOG.md -->`` on a separate line is replaced by that file; without its title if
the page has one. Links in the file to another file become links to that file's page, or the name of
the file if it has none. An SVG image (``![...](drawing.svg)``) is inlined, so that it follows the
theme of the page.

The site also contains the benchmark results (``benchmarks/results``) and the examples.
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
_IMAGE = re.compile(r"^!\[([^\]]*)\]\(([\w./-]+\.svg)\)$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add the benchmark results, and a page for each example."""
    for path in sorted([*RESULTS.rglob("*.md"), *RESULTS.rglob("*.png")]):
        target = f"results/{path.relative_to(RESULTS)}"
        files.append(File.generated(config, target, abs_src_path=str(path)))
    for path in sorted(EXAMPLES.rglob("*.py")):
        text = f"# {path.name}\n\n```python\n{path.read_text()}```\n"
        files.append(File.generated(config, _page_of_example(path), content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, **_: Any) -> str:
    """Insert the included files and images."""
    folder = Path(config.docs_dir, page.file.src_uri).parent
    has_title = markdown.startswith("# ")
    text = _INCLUDE.sub(lambda match: _included(match[1], has_title), markdown)
    text = text.replace("](../benchmarks/results/", "](results/")
    return _IMAGE.sub(lambda match: _inlined(match[1], folder / match[2]), text)


def _inlined(label: str, file: Path) -> str:
    lines = (line for line in file.read_text().splitlines() if line.strip())
    svg = "\n".join(lines).replace("<svg", f'<svg aria-label="{escape(label)}"', 1)
    return f'<figure class="drawing">\n{svg}\n</figure>'


def _included(name: str, without_title: bool) -> str:
    text = (ROOT / name).read_text()
    if without_title:
        text = text.partition("\n")[2]
    folder = PurePosixPath(name).parent
    return _LINK.sub(lambda match: _link(match[0], *match.groups(), folder), text)


def _link(link: str, text: str, target: str, folder: PurePosixPath) -> str:
    """Translate a link of an included file, which is in ``folder``."""
    if target.startswith("#") or "://" in target:
        return link
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
