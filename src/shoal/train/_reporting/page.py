"""Elements of an HTML page. All text is escaped in this module, and only here."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Mapping

__all__ = ["block", "cards", "notice", "page", "picture", "section", "table", "video"]

_CSS = """
:root { --ink: #2b303a; --faint: #6b7380; --line: #e3e7ed; --blue: #2f6fb3; }
* { box-sizing: border-box; }
body { margin: 0; background: #f4f6f9; color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { margin: 0; font-size: 1.9rem; letter-spacing: -0.01em; overflow-wrap: anywhere; }
h2 { margin: 0 0 1rem; font-size: 1.15rem; }
.faint { color: var(--faint); }
section { margin-top: 1.5rem; padding: 1.4rem 1.5rem; background: white;
  border: 1px solid var(--line); border-radius: 12px; }
.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(150px, 1fr));
  gap: 1rem 1.5rem; margin: 0; }
.cards dt { color: var(--faint); font-size: 0.82rem; }
.cards dd { margin: 0; font-size: 1.25rem; font-weight: 600; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { padding: 0.45rem 0.75rem; text-align: right; border-bottom: 1px solid var(--line); }
th { color: var(--faint); font-size: 0.82rem; font-weight: 500; white-space: nowrap; }
th:first-child, td:first-child { padding-left: 0; text-align: left; overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
img, video { display: block; max-width: 100%; height: auto; margin: 0 auto 1rem; }
video { width: 720px; border-radius: 8px; background: black; }
a { color: var(--blue); }
pre { margin: 0; padding: 1rem; overflow-x: auto; border-radius: 8px; background: #f4f6f9;
  font: 13px/1.5 ui-monospace, Menlo, Consolas, monospace; }
.notice { margin-top: 1.5rem; padding: 0.9rem 1.2rem; border-left: 4px solid #e07b39;
  border-radius: 6px; background: #fdf3ec; }
"""


def page(title: str, below: str, parts: Iterable[str]) -> str:
    """Return a complete page.

    Args:
        title: The title of the page.
        below: A line below the title.
        parts: HTML from the other functions of this module.
    """
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_escaped(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n<main>\n"
        f'<h1>{_escaped(title)}</h1>\n<div class="faint">{_escaped(below)}</div>\n'
        + "\n".join(parts)
        + "\n</main>\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Return a section with a heading, or an empty string if it has no content."""
    content = "\n".join(part for part in parts if part)
    return f"<section>\n<h2>{_escaped(heading)}</h2>\n{content}\n</section>" if content else ""


def cards(figures: Iterable[tuple[str, str]]) -> str:
    """Return a grid of names and values."""
    items = "".join(
        f"<div><dt>{_escaped(name)}</dt><dd>{_escaped(value)}</dd></div>" for name, value in figures
    )
    return f'<dl class="cards">{items}</dl>' if items else ""


def table(rows: Iterable[Mapping[str, str]]) -> str:
    """Return a table of rows that map column names to cells; empty if there are no rows.

    Example:
        >>> table([{"player": "<b>"}]).count("&lt;b&gt;")
        1
    """
    all_rows = list(rows)
    if not all_rows:
        return ""
    body = "\n".join(f"<tr>{_cells('td', row.values())}</tr>" for row in all_rows)
    return (
        f'<div class="scroll"><table>\n<thead><tr>{_cells("th", all_rows[0])}</tr></thead>\n'
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def picture(png: bytes, name: str) -> str:
    """Return an image that is embedded in the page."""
    text = base64.b64encode(png).decode("ascii")
    return f'<img alt="{_escaped(name)}" src="data:image/png;base64,{text}">'


def video(path: str) -> str:
    """Return a video player for a file next to the page."""
    link = _escaped(path)
    return f'<video controls preload="metadata" src="{link}"></video>\n<a href="{link}">{link}</a>'


def block(text: str) -> str:
    """Return preformatted text."""
    return f"<pre>{_escaped(text)}</pre>"


def notice(text: str) -> str:
    """Return a highlighted notice."""
    return f'<div class="notice">{_escaped(text)}</div>'


def _cells(tag: str, texts: Iterable[str]) -> str:
    return "".join(f"<{tag}>{_escaped(text)}</{tag}>" for text in texts)


def _escaped(text: str) -> str:
    return html.escape(text, quote=True)
