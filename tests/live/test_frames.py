"""Frames are captured while they are watched, within their share of the time."""

import os
import signal
import time
from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

import shoal
from shoal.live._frames import FrameCapture, FrameStore, as_rgb_image
from shoal.live._watcher import Watcher


class Scene(gymnasium.Env):
    """Renders images as bright as its number."""

    metadata = {"render_modes": ["rgb_array", "ansi"]}
    action_space = Discrete(2)

    def __init__(
        self, number=0, render_mode="rgb_array", seconds=0.0, space=None, fails=False, dies=False
    ):
        self.number, self.render_mode = number, render_mode
        self.seconds, self.fails, self.dies = seconds, fails, dies
        self.observation_space = space or Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.full_like(self.observation_space.low, self.number), {}

    def step(self, action):
        return np.full_like(self.observation_space.low, self.number), 0.0, False, False, {}

    def render(self):
        time.sleep(self.seconds)
        if self.dies:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.fails:
            raise OSError("the window was closed")
        return np.full((600, 400, 3), self.number, np.uint8)


def scenes(count, **options):
    return shoal.make([partial(Scene, slot, **options) for slot in range(count)], backend="inline")


def step_for(seconds, envs, capture):
    """Step for a while, and capture frames after each step."""
    observations, _ = envs.reset()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        observations, *_ = envs.step(np.zeros(envs.num_envs, np.int64))
        capture.capture(observations, 0.0)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        ((84, 84), (84, 84, 3)),
        ((84, 84, 1), (84, 84, 3)),
        ((84, 90, 3), (84, 90, 3)),
        ((84, 84, 4), (84, 84, 3)),
        ((4, 84, 90), (84, 90, 3)),
        ((1, 84, 84), (84, 84, 3)),
        ((3, 84, 90), (84, 90, 3)),
        ((4, 84, 90, 3), (84, 90, 3)),
        ((84,), None),
        ((8, 8), None),
        ((0, 84), None),
        ((2, 3, 84, 84, 3), None),
    ],
)
def test_arrays_of_many_shapes_are_converted_to_images(shape, expected):
    image = as_rgb_image(np.zeros(shape, np.uint8))
    assert expected == (None if image is None else image.shape)


def test_of_stacked_frames_the_newest_is_returned():
    for stack in (np.arange(4)[:, None, None], np.arange(4)):
        shape = (4, 84, 84) if stack.ndim == 3 else (84, 84, 4)
        assert (as_rgb_image(np.broadcast_to(stack, shape).astype(np.uint8)) == 3).all()
    assert as_rgb_image(np.zeros((84, 84))) is None
    assert as_rgb_image("text") is None


def test_every_tile_gets_frames_of_its_slot():
    frames = FrameStore(5)
    with scenes(5) as envs:
        capture = FrameCapture(envs.pool, frames, share=1.0)
        frames.newer(0)
        step_for(0.3, envs, capture)
    newer = frames.newer(0)
    assert [frame.slot for frame in newer] == [0, 1, 2, 3, 4]
    for frame in newer:
        assert max(frame.pixels.shape) == 200  # shrunk to the size of a tile
        assert (frame.pixels == frame.slot).all()
    newest = max(frame.version for frame in newer)
    assert frames.newer(newest) == []
    assert frames.as_dict()["version"] == newest
    assert [frame.slot for frame in frames.newer(0, only=3)] == [3]


def test_at_most_16_slots_are_tiles():
    assert FrameStore(1).tiles == [0]
    assert FrameStore(16).tiles == list(range(16))
    tiles = FrameStore(1000).tiles
    assert len(tiles) == len(set(tiles)) == 16
    assert (tiles[0], tiles[-1]) == (0, 999)


def test_no_frames_are_captured_without_requests():
    frames = FrameStore(2)
    with scenes(2) as envs:
        step_for(0.05, envs, FrameCapture(envs.pool, frames, share=1.0))
    assert frames.version == 0


def test_captures_stay_within_the_share_and_prefer_the_focused_slot():
    frames = FrameStore(4)
    frames.focus = 2
    captured = []
    with scenes(4, seconds=0.004) as envs:
        capture = FrameCapture(envs.pool, frames, share=0.1)
        frames.newer(0)
        put = frames.put
        frames.put = lambda slot, pixels: (captured.append((slot, pixels.shape)), put(slot, pixels))
        step_for(1.0, envs, capture)
    # 0.1 s for frames of at least 4 ms each, and the first frame, whose cost was unknown.
    assert 2 <= len(captured) <= 26
    assert sum(slot == 2 for slot, _ in captured) > len(captured) / 2
    assert {max(shape) for slot, shape in captured if slot == 2} == {480}
    assert {max(shape) for slot, shape in captured if slot != 2} <= {200}


def test_kernels_are_drawn_without_a_render_mode():
    frames = FrameStore(2)
    with shoal.make("CartPole-v1", 2) as envs:
        capture = FrameCapture(envs.pool, frames, share=1.0)
        frames.newer(0)
        step_for(0.1, envs, capture)
    assert frames.unavailable is None
    assert len(frames.newer(0)) == 2


def test_image_observations_are_shown_without_a_render_mode():
    frames, space = FrameStore(2), Box(0, 255, (4, 84, 84), np.uint8)
    with scenes(2, render_mode=None, space=space) as envs:
        frames.newer(0)
        step_for(0.1, envs, FrameCapture(envs.pool, frames, share=1.0))
    assert [int(frame.pixels.max()) for frame in frames.newer(0)] == [0, 1]


def test_the_reason_is_stored_if_there_is_nothing_to_show():
    frames = FrameStore(2)
    with scenes(2, render_mode=None) as envs:
        FrameCapture(envs.pool, frames, share=1.0)
    assert "render_mode='rgb_array'" in frames.unavailable


def test_an_exception_of_render_is_logged_once_and_stepping_continues():
    watcher = Watcher("scenes")
    with scenes(2, fails=True) as envs:
        watcher.attach(envs.pool, "", 1.0)
        watcher.frames.newer(0)
        observations, _ = envs.reset()
        for _ in range(3):
            watcher.on_batch(envs.pool, observations)
            envs.step(np.zeros(2, np.int64))
    state = watcher.state()
    errors = [entry["text"] for entry in state["log"] if entry["kind"] == "error"]
    assert errors == ["OSError: the window was closed"]
    assert "the window was closed" in state["pictures"]["unavailable"]


def test_capturing_stops_only_after_repeated_crashes_of_workers_that_render():
    watcher = Watcher("scenes")
    factories = [partial(Scene, slot, dies=slot == 1) for slot in range(2)]
    with shoal.make(factories, backend="process", workers=2, on_crash="restart") as envs:
        watcher.attach(envs.pool, "", 1.0)
        watcher.frames.newer(0)
        observations, _ = envs.reset()
        deadline = time.monotonic() + 20
        while watcher.frames.unavailable is None and time.monotonic() < deadline:
            observations, *_ = envs.step(np.zeros(2, np.int64))
            watcher.on_batch(envs.pool, observations)
        restarts = [state.restarts for state in envs.pool.worker_states()]
    assert "WorkerCrashedError" in watcher.frames.unavailable
    assert [frame.slot for frame in watcher.frames.newer(0)] == [0]
    assert restarts[0] == 0
    assert 2 <= restarts[1] <= 3
