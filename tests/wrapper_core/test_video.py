"""Recording and writing of videos."""

import builtins
import subprocess

import imageio.v3 as imageio
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled

from shoal._wrapper_core.video import VideoRecording, write_video


@pytest.mark.parametrize("shape", [(32, 48, 3), (31, 47, 3), (33, 20)])
def test_frames_of_any_size(tmp_path, shape):
    frames = [np.full(shape, 20 * number, np.uint8) for number in range(5)]
    write_video(tmp_path / "a.mp4", frames, fps=10)
    read = imageio.imread(tmp_path / "a.mp4")
    height, width = shape[:2]
    assert read.shape == (5, height + height % 2, width + width % 2, 3)
    shades = read[:, 4:-4, 4:-4].mean(axis=(1, 2, 3))
    assert np.abs(shades - 20 * np.arange(5)).max() < 6
    assert imageio.immeta(tmp_path / "a.mp4")["fps"] == 10


def test_codec_is_widely_supported(tmp_path):
    import imageio_ffmpeg

    write_video(tmp_path / "a.mp4", [np.zeros((32, 32, 3), np.uint8)] * 3, fps=30)
    tool = imageio_ffmpeg.get_ffmpeg_exe()
    output = subprocess.run([tool, "-i", tmp_path / "a.mp4"], capture_output=True, text=True).stderr
    assert "h264" in output
    assert "yuv420p" in output


def test_recording(tmp_path):
    recording = VideoRecording(tmp_path / "folder", fps=5)
    assert not recording.is_recording
    with pytest.raises(RuntimeError, match="no video"):
        recording.stop()
    recording.start("one")
    assert recording.path == tmp_path / "folder" / "one.mp4"
    with pytest.warns(UserWarning, match="zero frames"):
        assert recording.stop() is None
    recording.start("two")
    recording.frames.append(np.zeros((16, 16, 3), np.uint8))
    recording.start("three")
    recording.frames.append(np.zeros((16, 16, 3), np.uint8))
    assert recording.stop() == tmp_path / "folder" / "three.mp4"
    assert sorted(file.name for file in recording.folder.iterdir()) == ["three.mp4", "two.mp4"]


def test_missing_library_is_reported_before_recording(tmp_path, monkeypatch):
    original = builtins.__import__

    def refuse(name, *arguments):
        if name.startswith("imageio"):
            raise ImportError(name)
        return original(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(DependencyNotInstalled, match=r"shoal\[video\]"):
        VideoRecording(tmp_path / "folder", fps=5)
    assert not (tmp_path / "folder").exists()
