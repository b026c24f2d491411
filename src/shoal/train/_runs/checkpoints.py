"""Checkpoints of a run: the newest few, each whole or not there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError
from shoal.train._files import read_file, write_file

__all__ = ["Checkpoints"]

_NAME = re.compile(r"step-(\d+)\.checkpoint$")


class Checkpoints:
    """The checkpoints in a folder.

    Args:
        folder: Where they are.
        kept: How many of them, the newest.
    """

    def __init__(self, folder: Path, kept: int) -> None:
        self._folder = folder
        self._kept = kept

    def files(self) -> list[Path]:
        """All of them, the newest last."""
        found = [path for path in self._folder.glob("*.checkpoint") if _NAME.match(path.name)]
        return sorted(found)

    def save(self, step: int, data: dict[str, Any]) -> Path:
        """Write one; when that is done, those are removed that are too many, or of a later step.

        Raises:
            CheckpointError: It cannot be written. Those that were there are still.
        """
        path = self._folder / f"step-{step:012d}.checkpoint"
        write_file(path, data)
        files = self.files()
        now = files.index(path)
        # Later ones are of a future that did not come: the run was resumed before them.
        for other in files[: max(0, now + 1 - self._kept)] + files[now + 1 :]:
            other.unlink()
        return path

    def newest(self, device: str) -> dict[str, Any]:
        """Read the newest one.

        Raises:
            CheckpointError: There is none, or it is damaged; the message names an older one that
                is not.
        """
        files = self.files()
        if not files:
            raise CheckpointError(f"{self._folder} has no checkpoint to resume from")
        try:
            return read_file(files[-1], device)
        except CheckpointError as error:
            for older in reversed(files[:-1]):
                if _is_whole(older):
                    raise CheckpointError(
                        f"{error}; an older one is whole: resume with checkpoint={older.name!r}, "
                        f"on the command line with --checkpoint {older.name}"
                    ) from error
            raise

    def read(self, name: str, device: str) -> dict[str, Any]:
        """Read the one of this name."""
        path = self._folder / Path(name).name
        if not path.is_file():
            names = ", ".join(file.name for file in self.files()) or "none"
            raise CheckpointError(f"there is no checkpoint {path}; there are: {names}")
        return read_file(path, device)


def _is_whole(path: Path) -> bool:
    try:
        read_file(path)
    except CheckpointError:
        return False
    return True
