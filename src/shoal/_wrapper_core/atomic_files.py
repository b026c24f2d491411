"""Files that are written as a whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

__all__ = ["replacing"]


@contextmanager
def replacing(path: str | Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of what is at the path once it is complete.

    If writing fails, say because the disk is full, what was there before is still there.
    """
    unfinished = f"{os.fspath(path)}.unfinished"
    try:
        with open(unfinished, "wb") as file:
            yield file
        os.replace(unfinished, path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
