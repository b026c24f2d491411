"""Where results lie: for each name a file for programs and one for readers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["write_results"]


def write_results(folder: Path, name: str, data: dict[str, Any], document: str) -> None:
    """Write data as JSON and a document as Markdown; the folder is made where it is missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(data, indent=2) + "\n")
    (folder / f"{name}.md").write_text(document)
