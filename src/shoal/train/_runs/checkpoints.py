"""Checkpoint files of a run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError
from shoal.train._files import read_file, write_file

__all__ = ["Checkpoints"]

_NAME = re.compile(r"step-(\d+)\.checkpoint$")


class Checkpoints:
    """A folder with the newest checkpoints of a run.

    Args:
        folder: The folder.
        kept: Number of checkpoints to keep.
    """

    def __init__(self, folder: Path, kept: int) -> None:
        self._folder = folder
        self._kept = kept

    def files(self) -> list[Path]:
        """Return the checkpoint files, oldest first."""
        return sorted(path for path in self._folder.glob("*.checkpoint") if _NAME.match(path.name))

    def save(self, step: int, data: dict[str, Any]) -> Path:
        """Write a checkpoint, then remove surplus checkpoints and checkpoints of later steps.

        Raises:
            CheckpointError: If the checkpoint cannot be written. Existing checkpoints are kept.
        """
        path = self._folder / f"step-{step:012d}.checkpoint"
        write_file(path, data)
        files = self.files()
        position = files.index(path)
        # Later checkpoints exist if the run was resumed from an older one: they are obsolete.
        for obsolete in files[: max(0, position + 1 - self._kept)] + files[position + 1 :]:
            obsolete.unlink()
        return path

    def newest(self, device: str) -> dict[str, Any]:
        """Read the newest checkpoint.

        Raises:
            CheckpointError: If there is no checkpoint, or the newest is damaged. The message then
                names the newest undamaged one.
        """
        files = self.files()
        if not files:
            raise CheckpointError(f"{self._folder} contains no checkpoint to resume from")
        try:
            return read_file(files[-1], device)
        except CheckpointError as error:
            for older in reversed(files[:-1]):
                if _is_intact(older):
                    raise CheckpointError(
                        f"{error}; an older checkpoint is intact: resume with "
                        f"checkpoint={older.name!r}, or --checkpoint {older.name} on the command "
                        "line"
                    ) from error
            raise

    def read(self, name: str, device: str) -> dict[str, Any]:
        """Read the checkpoint with this name."""
        path = self._folder / Path(name).name
        if not path.is_file():
            names = ", ".join(file.name for file in self.files()) or "none"
            raise CheckpointError(f"there is no checkpoint {path}; available checkpoints: {names}")
        return read_file(path, device)


def _is_intact(path: Path) -> bool:
    try:
        read_file(path)
    except CheckpointError:
        return False
    return True
