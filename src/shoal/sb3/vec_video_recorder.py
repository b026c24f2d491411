"""A wrapper that records videos."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import logger
from stable_baselines3.common.vec_env import vec_video_recorder as original

from shoal._wrapper_core.video import VideoRecording
from shoal.sb3.base_vec_env import (
    VecEnv,
    VecEnvObs,
    VecEnvStepReturn,
    VecEnvWrapper,
    counterpart_of,
)

__all__ = ["VecVideoRecorder"]


@counterpart_of(original.VecVideoRecorder)
class VecVideoRecorder(VecEnvWrapper):
    """Records MP4 videos of all environments as tiles of one image.

    Args:
        venv: The vector to wrap, whose render mode must be ``"rgb_array"``.
        video_folder: The folder of the videos; it is created if it does not exist.
        record_video_trigger: Takes the number of steps so far, and returns whether to start a
            video.
        video_length: Number of steps in a video.
        name_prefix: Prefix of the file names.
    """

    video_name: str
    video_path: str

    def __init__(
        self,
        venv: VecEnv,
        video_folder: str,
        record_video_trigger: Callable[[int], bool],
        video_length: int = 200,
        name_prefix: str = "rl-video",
    ) -> None:
        super().__init__(venv)
        if venv.render_mode != "rgb_array":
            raise AssertionError(f"The render_mode must be 'rgb_array', not {venv.render_mode}")
        self.metadata: dict[str, Any] = _metadata(venv)
        self.frames_per_sec: float = self.metadata.get("render_fps", 30)
        self._video = VideoRecording(video_folder, self.frames_per_sec)
        self.video_folder = str(self._video.folder)
        self.record_video_trigger = record_video_trigger
        self.video_length = video_length
        self.name_prefix = name_prefix
        self.step_id = 0

    @property
    def recording(self) -> bool:
        """Whether a video is being recorded."""
        return self._video.is_recording

    @property
    def recorded_frames(self) -> list[npt.NDArray[Any]]:
        """The frames of the video that is being recorded."""
        return self._video.frames

    def reset(self) -> VecEnvObs:
        """Reset the environments, and start a video if the trigger says so."""
        observations = self.venv.reset()
        if self.record_video_trigger(self.step_id):
            self._start()
        return observations

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the step, and record it if a video is being recorded or started."""
        results = self.venv.step_wait()
        self.step_id += 1
        if self.recording:
            self._capture()
            if len(self.recorded_frames) > self.video_length:
                self._video.stop()
        elif self.record_video_trigger(self.step_id):
            self._start()
        return results

    def close(self) -> None:
        """Close every environment, and write the video that is being recorded."""
        try:
            self.venv.close()
        finally:
            if self.recording:
                self._video.stop()

    def _start(self) -> None:
        first, last = self.step_id, self.step_id + self.video_length
        self._video.start(f"{self.name_prefix}-step-{first}-to-step-{last}")
        path = self._video.path
        assert isinstance(path, Path)
        self.video_name, self.video_path = path.name, str(path)
        self._capture()

    def _capture(self) -> None:
        frame = self.venv.render()
        if isinstance(frame, np.ndarray):
            self.recorded_frames.append(frame)
        else:
            self._video.stop()
            logger.warn(
                "Recording stopped: expected type of frame returned by render to be a numpy array, "
                f"got instead {type(frame)}."
            )

    def __del__(self) -> None:
        video = vars(self).get("_video")
        if video is not None and video.frames:
            logger.warn("Unable to save last video! Did you call close()?")


def _metadata(venv: VecEnv) -> dict[str, Any]:
    """Return the metadata of the environments, or of a vector without single environments."""
    try:
        metadata: dict[str, Any] = venv.get_attr("metadata")[0]
    except (AttributeError, NotImplementedError):
        metadata = venv.unwrapped.metadata
    return metadata
