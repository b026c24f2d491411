"""Pictures are taken while somebody looks, within their share of the time, of whatever there is."""

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
    """Its picture is as bright as its slot's number, and takes some time."""

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
            raise OSError("the window is gone")
        return np.full((600, 400, 3), self.number, np.uint8)


def scenes(count, **options):
    return shoal.make([partial(Scene, slot, **options) for slot in range(count)], backend="inline")


def stepped(envs, camera, seconds):
    """Step for a while, and look after each step, as somebody who looks at all pictures."""
    observations, _ = envs.reset()
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        observations, *_ = envs.step(np.zeros(envs.num_envs, np.int64))
        camera.look(observations, 0.0)


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
def test_arrays_of_many_shapes_are_pictures(shape, expected):
    picture = as_rgb_image(np.zeros(shape, np.uint8))
    assert expected == (None if picture is None else picture.shape)


def test_of_a_stack_the_newest_frame_is_shown():
    for stack in (np.arange(4)[:, None, None], np.arange(4)):
        shape = (4, 84, 84) if stack.ndim == 3 else (84, 84, 4)
        assert (as_rgb_image(np.broadcast_to(stack, shape).astype(np.uint8)) == 3).all()
    assert as_rgb_image(np.zeros((84, 84))) is None
    assert as_rgb_image("text") is None


def test_all_tiles_get_pictures_of_their_own_slots():
    frames = FrameStore(5)
    with scenes(5) as envs:
        camera = FrameCapture(envs.pool, frames, share=1.0)
        frames.newer(0)
        stepped(envs, camera, 0.3)
    found = frames.newer(0)
    assert [picture.slot for picture in found] == [0, 1, 2, 3, 4]
    for picture in found:
        assert max(picture.pixels.shape) == 200  # made small enough for a tile
        assert (picture.pixels == picture.slot).all()
    newest = max(picture.version for picture in found)
    assert frames.newer(newest) == []
    assert frames.told()["version"] == newest
    assert [picture.slot for picture in frames.newer(0, only=3)] == [3]


def test_of_many_slots_some_are_shown():
    assert FrameStore(1).tiles == [0]
    assert FrameStore(16).tiles == list(range(16))
    tiles = FrameStore(1000).tiles
    assert len(tiles) == len(set(tiles)) == 16
    assert (tiles[0], tiles[-1]) == (0, 999)


def test_who_does_not_look_costs_nothing():
    frames = FrameStore(2)
    with scenes(2) as envs:
        stepped(envs, FrameCapture(envs.pool, frames, share=1.0), 0.05)
    assert frames.version == 0


def test_slow_pictures_are_taken_seldom_and_what_is_looked_at_is_taken_most():
    frames = FrameStore(4)
    frames.focus = 2
    taken = []
    with scenes(4, seconds=0.004) as envs:
        camera = FrameCapture(envs.pool, frames, share=0.1)
        frames.newer(0)
        put = frames.put
        frames.put = lambda slot, pixels: (taken.append((slot, pixels.shape)), put(slot, pixels))
        stepped(envs, camera, 1.0)
    # 0.1 s of pictures that take 4 ms or more, and one that nobody could know the cost of.
    assert 2 <= len(taken) <= 26
    assert sum(slot == 2 for slot, _ in taken) > len(taken) / 2
    assert {max(shape) for slot, shape in taken if slot == 2} == {480}
    assert {max(shape) for slot, shape in taken if slot != 2} <= {200}


def test_kernels_are_drawn_without_a_render_mode():
    frames = FrameStore(2)
    with shoal.make("CartPole-v1", 2) as envs:
        camera = FrameCapture(envs.pool, frames, share=1.0)
        frames.newer(0)
        stepped(envs, camera, 0.1)
    assert frames.why_none is None
    assert len(frames.newer(0)) == 2


def test_observations_that_are_pictures_are_shown():
    frames, space = FrameStore(2), Box(0, 255, (4, 84, 84), np.uint8)
    with scenes(2, render_mode=None, space=space) as envs:
        frames.newer(0)
        stepped(envs, FrameCapture(envs.pool, frames, share=1.0), 0.1)
    assert [int(picture.pixels.max()) for picture in frames.newer(0)] == [0, 1]


def test_where_there_are_none_it_is_said_why():
    frames = FrameStore(2)
    with scenes(2, render_mode=None) as envs:
        FrameCapture(envs.pool, frames, share=1.0)
    assert "render_mode='rgb_array'" in frames.why_none


def test_what_rendering_raises_is_told_once_and_the_steps_go_on():
    watcher = Watcher("scenes")
    with scenes(2, fails=True) as envs:
        watcher.attach(envs.pool, "", 1.0)
        watcher.frames.newer(0)
        observations, _ = envs.reset()
        for _ in range(3):
            watcher.look(envs.pool, observations)
            envs.step(np.zeros(2, np.int64))
    state = watcher.state()
    errors = [entry["text"] for entry in state["log"] if entry["kind"] == "error"]
    assert errors == ["OSError: the window is gone"]
    assert "the window is gone" in state["pictures"]["why_none"]


def test_a_worker_that_is_lost_while_it_renders_ends_no_pictures_unless_it_always_is():
    watcher = Watcher("scenes")
    made = [partial(Scene, slot, dies=slot == 1) for slot in range(2)]
    with shoal.make(made, backend="process", workers=2, on_crash="restart") as envs:
        watcher.attach(envs.pool, "", 1.0)
        watcher.frames.newer(0)
        observations, _ = envs.reset()
        deadline = time.monotonic() + 20
        while watcher.frames.why_none is None and time.monotonic() < deadline:
            observations, *_ = envs.step(np.zeros(2, np.int64))
            watcher.look(envs.pool, observations)
        restarts = [state.restarts for state in envs.pool.worker_states()]
    assert "WorkerCrashedError" in watcher.frames.why_none
    assert [picture.slot for picture in watcher.frames.newer(0)] == [0]
    assert restarts[0] == 0
    assert 2 <= restarts[1] <= 3
