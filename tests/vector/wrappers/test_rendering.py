"""RecordVideo and HumanRendering."""

import gymnasium
import gymnasium.wrappers.vector as gymnasium_wrappers
import imageio.v2
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.vector import AutoresetMode

from shoal.vector import SyncVectorEnv, wrappers


class PaintedEnv(gymnasium.Env):
    """Renders the number of steps as a shade of grey; episodes have ``length`` steps."""

    observation_space = spaces.Discrete(9)
    action_space = spaces.Discrete(2)
    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, render_mode="rgb_array", size=(16, 24), length=3):
        self.render_mode, self.size, self.length = render_mode, size, length

    def reset(self, *, seed=None, options=None):
        self.steps = 0
        return 0, {}

    def step(self, action):
        self.steps += 1
        return self.steps, 1.0, self.steps == self.length, False, {}

    def render(self):
        return np.full((*self.size, 3), 40 * self.steps, np.uint8)


def painted(vector=SyncVectorEnv, count=4, mode=AutoresetMode.NEXT_STEP, **kwargs):
    factories = [lambda length=3 + k: PaintedEnv(length=length, **kwargs) for k in range(count)]
    return vector(factories, autoreset_mode=mode)


def videos(folder):
    """Return the number of frames of each video in a folder."""
    return {path.stem: len(imageio.v2.mimread(path)) for path in folder.iterdir()}


def record_without_writing(envs):
    """Collect the videos of Gymnasium's wrapper instead of writing them."""
    written = {}

    def stop_recording():
        written[envs._video_name] = envs.recorded_frames
        envs.recorded_frames, envs.recording = [], False

    envs.stop_recording = stop_recording
    return written


def record(envs):
    """Collect the videos that Shoal's wrapper writes."""
    written = {}
    stop = envs.stop_recording

    def stop_recording():
        written[envs._video.name] = envs.recorded_frames
        stop()

    envs.stop_recording = stop_recording
    return written


EPISODES = {}
STEPS = {"step_trigger": lambda step: step in (1, 5), "video_length": 2}
CASES = [
    (EPISODES, AutoresetMode.NEXT_STEP),
    (EPISODES, AutoresetMode.SAME_STEP),
    (EPISODES, AutoresetMode.DISABLED),
    (STEPS, AutoresetMode.NEXT_STEP),
    (STEPS, AutoresetMode.SAME_STEP),
    ({"video_length": 2, "name_prefix": "short"}, AutoresetMode.NEXT_STEP),
    (
        {"episode_trigger": lambda episode: episode == 1, "record_first_only": True},
        AutoresetMode.NEXT_STEP,
    ),
    ({"video_aspect_ratio": (16, 2), "fps": 5, "gc_trigger": None}, AutoresetMode.NEXT_STEP),
]


@pytest.mark.parametrize(
    ("choice", "mode"),
    [*CASES[:3], *(pytest.param(*case, marks=pytest.mark.slow) for case in CASES[3:])],
)
@pytest.mark.filterwarnings("ignore:.*last frame")
def test_videos_equal_gymnasium(choice, mode, tmp_path):
    ours = wrappers.RecordVideo(painted(mode=mode), tmp_path / "ours", **choice)
    theirs = gymnasium_wrappers.RecordVideo(
        painted(gymnasium.vector.SyncVectorEnv, mode=mode), str(tmp_path / "theirs"), **choice
    )
    written, expected = record(ours), record_without_writing(theirs)
    for envs in (ours, theirs):
        envs.reset(seed=0)
        for _ in range(9):
            _, _, terminated, truncated, _ = envs.step(np.zeros(4, np.int64))
            if mode is AutoresetMode.DISABLED and (terminated | truncated).any():
                envs.reset(options={"reset_mask": terminated | truncated})
        envs.close()
        assert not envs.recording
        assert envs.recorded_frames == []
    for name in ("step_id", "episode_id", "frame_rows", "frame_cols", "frames_per_sec"):
        assert getattr(ours, name) == getattr(theirs, name)
    assert written
    np.testing.assert_equal(written, expected)
    assert videos(tmp_path / "ours") == {name: len(frames) for name, frames in written.items()}


def test_frames_are_tiled(tmp_path):
    with wrappers.RecordVideo(painted(count=6), tmp_path / "videos") as envs:
        envs.reset(seed=0)
        envs.step(np.zeros(6, np.int64))
        assert envs.recording
        assert (envs.frame_rows, envs.frame_cols) == (2, 3)
        assert [frame.shape for frame in envs.recorded_frames] == [(32, 72, 3)] * 2
    assert list(videos(tmp_path / "videos").values()) == [2]


def test_warnings_about_videos(tmp_path):
    with pytest.warns(UserWarning, match="will be overwritten"):
        wrappers.RecordVideo(painted(), tmp_path)
    with pytest.warns(UserWarning, match="last frame"):
        wrappers.RecordVideo(painted(mode=AutoresetMode.SAME_STEP), tmp_path / "new")
    envs = wrappers.RecordVideo(painted(), tmp_path / "other")
    envs.reset(seed=0)
    inner = envs.env
    with pytest.warns(UserWarning, match=r"Did you call close\(\)"):
        del envs
    inner.close()


@pytest.mark.parametrize("render_mode", [None, "human", "ansi"])
def test_videos_need_images(render_mode, tmp_path):
    with painted(render_mode=render_mode) as envs:
        with pytest.raises(ValueError, match="incompatible with RecordVideo"):
            wrappers.RecordVideo(envs, tmp_path / "videos")
        assert not (tmp_path / "videos").exists()


@pytest.mark.parametrize("screen_size", [None, (90, 33)])
def test_window_equals_gymnasium(screen_size, monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pygame = pytest.importorskip("pygame")
    shown = []
    for side in (wrappers, gymnasium_wrappers):
        envs = side.HumanRendering(painted(count=5), screen_size)
        assert envs.render_mode == "human"
        assert "human" in envs.metadata["render_modes"]
        assert "human" not in PaintedEnv.metadata["render_modes"]
        envs.reset(seed=0)
        envs.step(np.zeros(5, np.int64))
        shown.append(
            (
                (envs.num_rows, envs.num_cols, envs.scaled_subenv_size, envs.screen_size),
                pygame.surfarray.array3d(envs.window),
            )
        )
        envs.close()
    assert shown[0][0] == shown[1][0]
    assert np.array_equal(shown[0][1], shown[1][1])


def test_window_needs_images():
    envs = painted(render_mode="ansi")
    with envs, pytest.raises(ValueError, match=r"Expected env\.render_mode to be one of"):
        wrappers.HumanRendering(envs)
    envs = painted()
    envs.metadata.pop("render_fps")
    with envs, pytest.raises(ValueError, match="render_fps"):
        wrappers.HumanRendering(envs)


@pytest.mark.parametrize("mode", [None, "rgb_array_list"])
def test_render_modes_without_images_are_refused(tmp_path, mode):
    envs = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1", render_mode=mode)])
    with envs, pytest.raises(ValueError, match=f"Render mode is {mode}"):
        wrappers.RecordVideo(envs, tmp_path)
