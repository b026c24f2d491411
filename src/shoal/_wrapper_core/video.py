"""Recording of videos with the ffmpeg of imageio."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import logger
from gymnasium.error import DependencyNotInstalled

__all__ = ["VideoRecording", "write_video"]

Frame = npt.NDArray[np.uint8]


class VideoRecording:
    """Collects frames and writes them to MP4 files in a folder.

    Args:
        folder: The folder of the videos; it is created if it does not exist.
        fps: Frames per second.
    """

    def __init__(self, folder: str | Path, fps: float) -> None:
        _imageio()  # raises before anything is recorded
        self.folder = Path(folder).absolute()
        self.folder.mkdir(parents=True, exist_ok=True)
        self.fps = fps
        self.name: str | None = None
        self.frames: list[Frame] = []

    @property
    def is_recording(self) -> bool:
        """Whether a video is being recorded."""
        return self.name is not None

    @property
    def path(self) -> Path | None:
        """The path of the video that is being recorded."""
        return None if self.name is None else self.folder / f"{self.name}.mp4"

    def start(self, name: str) -> None:
        """Start a video; if one is being recorded, finish it first."""
        if self.is_recording:
            self.stop()
        self.name = name

    def stop(self) -> Path | None:
        """Write the video that is being recorded; returns its path, or None without frames."""
        path, frames = self.path, self.frames
        if path is None:
            raise RuntimeError("no video is being recorded")
        self.name, self.frames = None, []
        if not frames:
            logger.warn("Ignored saving a video as there were zero frames to save.")
            return None
        write_video(path, frames, self.fps)
        return path


def write_video(path: Path, frames: Sequence[Frame], fps: float) -> None:
    """Write frames of one shape, (height, width) or (height, width, channels), as an MP4 file."""
    # Chroma subsampling requires an even height and width.
    height, width = frames[0].shape[:2]
    padding = ((0, height % 2), (0, width % 2), *[(0, 0)] * (frames[0].ndim - 2))
    with _imageio().get_writer(
        path, format="FFMPEG", mode="I", fps=fps, codec="libx264", macro_block_size=1
    ) as writer:
        for frame in frames:
            writer.append_data(np.pad(frame, padding, mode="edge"))


def _imageio() -> Any:
    try:
        import imageio.v2
        import imageio_ffmpeg  # noqa: F401 - imageio imports it only when it writes
    except ImportError as error:
        raise DependencyNotInstalled(
            'videos need imageio with ffmpeg: pip install "shoal[video]"'
        ) from error
    return imageio.v2
