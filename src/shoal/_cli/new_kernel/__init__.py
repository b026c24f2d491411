"""Writes the folder of a new kernel: its source, how it is built, and its test."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["write_kernel"]

_TEMPLATE = Path(__file__).parent / "template"


def write_kernel(name: str, folder: Path | None = None) -> Path:
    """Write a folder with a kernel that works, for a user to change.

    Args:
        name: The environment's name, as in ``CatchBall``.
        folder: Where to; by default a folder of that name in small letters.

    Raises:
        ValueError: No C function could have this name.
        FileExistsError: There is something in the folder already.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            "a kernel's name begins with a letter and consists of letters, digits and _, got "
            f"{name!r}"
        )
    file_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    target = Path(file_name) if folder is None else folder
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} exists already, and is not empty")
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(_TEMPLATE.iterdir()):
        text = source.read_text().replace("@NAME@", name).replace("@FILE@", file_name)
        (target / source.name.replace("@FILE@", file_name).removesuffix(".in")).write_text(text)
    return target
