"""Create the folder of a new kernel: source, Makefile, README and test."""

from __future__ import annotations

import re
from pathlib import Path

__all__ = ["write_kernel"]

_TEMPLATE = Path(__file__).parent / "template"


def write_kernel(name: str, folder: Path | None = None) -> Path:
    """Write the files of an example kernel, which works and is meant to be edited.

    Args:
        name: The environment's name, such as ``CatchBall``.
        folder: The folder to write to; by default the name in snake case.

    Raises:
        ValueError: The name is not a valid C identifier.
        FileExistsError: The folder is not empty.
    """
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name):
        raise ValueError(
            "the name must start with a letter and contain only letters, digits and _, got "
            f"{name!r}"
        )
    file_name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    target = Path(file_name) if folder is None else folder
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise FileExistsError(f"{target} exists already and is not empty")
    target.mkdir(parents=True, exist_ok=True)
    for source in sorted(_TEMPLATE.iterdir()):
        text = source.read_text().replace("@NAME@", name).replace("@FILE@", file_name)
        (target / source.name.replace("@FILE@", file_name).removesuffix(".in")).write_text(text)
    return target
