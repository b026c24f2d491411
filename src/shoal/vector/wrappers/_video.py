"""A wrapper that records videos of all slots as tiles of one image."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium.vector
import numpy as np
from gymnasium.logger import warn
from gymnasium.vector import AutoresetMode

from shoal._wrapper_core.video import VideoRecording
from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import Arrays, Step, VectorWrapper, autoreset_mode_of

__all__ = ["RecordVideo"]

Trigger = Callable[[int], bool]


class RecordVideo(VectorWrapper):
    """Records videos of all slots as tiles of one image, with imageio's ffmpeg.

    Episodes and steps are counted from 0; episodes are those of the first slot. In the mode
    SAME_STEP, the last frame of an episode is not available.

    Args:
        env: The vector to wrap, which renders images.
        video_folder: The folder of the videos, ``{name_prefix}-episode-{number}.mp4`` or
            ``{name_prefix}-step-{number}.mp4``.
        video_aspect_ratio: Target ratio of width to height of all tiles together.
        record_first_only: Whether to record only the first slot.
        episode_trigger: Takes the number of an episode that starts, and returns whether to start a
            video. By default, if there is no ``step_trigger``, videos start at the episodes 0, 1,
            8, 27, ... and from 1000 on at every 1000th.
        step_trigger: Takes the number of a step, and returns whether to start a video.
        video_length: Number of steps in a video, 0 for an episode.
        name_prefix: Prefix of the file names.
        fps: Frames per second; by default that of the vector's metadata, or 30.
        disable_logger: Ignored, since writing a video logs nothing.
        gc_trigger: Takes the number of the current episode, and returns whether to collect garbage
            after writing a video.

    Example:
        >>> import shoal, tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> envs = shoal.make("CartPole-v1", 2, backend="inline", render_mode="rgb_array")
        >>> with RecordVideo(envs, folder.name + "/videos", video_length=3) as envs:
        ...     _ = envs.reset(seed=0)
        ...     for _ in range(3):
        ...         _ = envs.step([0, 1])
        >>> [path.name for path in Path(folder.name).rglob("*.mp4")]
        ['rl-video-episode-0.mp4']
        >>> folder.cleanup()
    """

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv[Any, Any, Any],
        video_folder: str | Path,
        video_aspect_ratio: tuple[int, int] = (1, 1),
        record_first_only: bool = False,
        episode_trigger: Trigger | None = None,
        step_trigger: Trigger | None = None,
        video_length: int = 0,
        name_prefix: str = "rl-video",
        fps: int | None = None,
        disable_logger: bool = True,
        gc_trigger: Trigger | None = lambda _: True,
    ) -> None:
        super().__init__(env)
        if env.render_mode in {None, "human", "ansi"} or env.render_mode.endswith("_list"):
            raise ValueError(
                f"Render mode is {env.render_mode}, which is incompatible with RecordVideo. "
                "Initialize your environment with a render_mode that returns an image, such as "
                "rgb_array."
            )
        self.autoreset_mode = autoreset_mode_of(env)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            warn(
                "The vector's autoreset mode is SAME_STEP, so recorded episodes will not contain "
                "their last frame."
            )
        if episode_trigger is None and step_trigger is None:
            episode_trigger = _is_scheduled
        if Path(video_folder).is_dir():
            warn(
                f"Videos in {Path(video_folder).absolute()} will be overwritten where they have "
                "the same names; choose another `video_folder` if this is not desired."
            )
        self.frames_per_sec = self.metadata.get("render_fps", 30) if fps is None else fps
        self._video = VideoRecording(video_folder, self.frames_per_sec)
        self.video_folder = str(self._video.folder)
        self.video_aspect_ratio = video_aspect_ratio
        self.record_first_only = record_first_only
        self.episode_trigger = episode_trigger
        self.step_trigger = step_trigger
        self.video_length: float = video_length if video_length != 0 else math.inf
        self.name_prefix = name_prefix
        self.disable_logger = disable_logger
        self.gc_trigger = gc_trigger
        self.has_autoreset = False
        self.frame_rows, self.frame_cols = -1, -1
        self.step_id, self.episode_id = -1, -1

    @property
    def recording(self) -> bool:
        """Whether a video is being recorded."""
        return self._video.is_recording

    @property
    def recorded_frames(self) -> list[Arrays]:
        """The frames of the video that is being recorded."""
        return self._video.frames

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector; resetting the first slot starts an episode."""
        slots, observations, infos = self._reset_slots(seed, options)
        if isinstance(slots, slice) or slots[0]:
            self._start_episode()
            self.has_autoreset = False
        self._capture()
        return observations, infos

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and record a frame if a video is being recorded."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        self.step_id += 1
        ended = bool(terminated[0] or truncated[0])
        if self.autoreset_mode is AutoresetMode.NEXT_STEP:
            if self.has_autoreset:
                self._start_episode()
            self.has_autoreset = ended
        elif self.autoreset_mode is AutoresetMode.SAME_STEP and ended:
            self._start_episode()
        if self.step_trigger and self.step_trigger(self.step_id):
            self.start_recording(f"{self.name_prefix}-step-{self.step_id}")
        self._capture()
        return observations, rewards, terminated, truncated, infos

    def start_recording(self, video_name: str) -> None:
        """Start a video; if one is being recorded, finish it first."""
        if self.recording:
            self.stop_recording()
        self._video.start(video_name)

    def stop_recording(self) -> None:
        """Write the video that is being recorded."""
        self._video.stop()
        if self.gc_trigger and self.gc_trigger(self.episode_id):
            gc.collect()

    def close(self, **kwargs: Any) -> None:
        """Close the wrapped vector, and write the video that is being recorded."""
        try:
            super().close(**kwargs)
        finally:
            if self.recording:
                self.stop_recording()

    def _start_episode(self) -> None:
        self.episode_id += 1
        if self.recording and self.video_length == math.inf:
            self.stop_recording()
        if self.episode_trigger and self.episode_trigger(self.episode_id):
            self.start_recording(f"{self.name_prefix}-episode-{self.episode_id}")

    def _capture(self) -> None:
        if not self.recording:
            return
        rendered = self.env.render()
        frames = np.array(rendered[:1] if self.record_first_only else rendered)  # type: ignore[index]
        count, height, width, channels = frames.shape
        if self.frame_rows == -1:
            ratio = self.video_aspect_ratio[0] / self.video_aspect_ratio[1]
            self.frame_rows, self.frame_cols = _grid_shape(count, width / height, ratio)
        grid = frames.reshape(self.frame_rows, self.frame_cols, height, width, channels)
        size = (self.frame_rows * height, self.frame_cols * width, channels)
        self.recorded_frames.append(grid.swapaxes(1, 2).reshape(size))
        if len(self.recorded_frames) > self.video_length:
            self.stop_recording()

    def __del__(self) -> None:
        video = getattr(self, "_video", None)  # None if the constructor failed
        if video is not None and video.frames:
            warn("Unable to save last video! Did you call close()?")


def _is_scheduled(episode: int) -> bool:
    """Whether an episode is recorded by default.

    >>> [episode for episode in range(3000) if _is_scheduled(episode)]
    [0, 1, 8, 27, 64, 125, 216, 343, 512, 729, 1000, 2000]
    """
    return episode % 1000 == 0 if episode >= 1000 else round(episode ** (1 / 3)) ** 3 == episode


def _grid_shape(count: int, frame_ratio: float, target_ratio: float) -> tuple[int, int]:
    """Return the rows and columns of the full grid whose aspect ratio is closest to the target.

    >>> _grid_shape(8, frame_ratio=2.0, target_ratio=1.0)
    (2, 4)
    """
    rows = [rows for rows in range(1, math.isqrt(count) + 1) if count % rows == 0]
    best = min(rows, key=lambda rows: abs(count // rows * frame_ratio / rows - target_ratio))
    return best, count // best
