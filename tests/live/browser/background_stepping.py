"""Vectors that are stepped by a thread while a page shows them."""

import itertools
import threading

import gymnasium
import numpy as np
from gymnasium import spaces

import shoal.live


class FlickeringEnv(gymnasium.Env):
    """Renders a different image after each step."""

    metadata = {"render_modes": ["rgb_array"]}
    observation_space = spaces.Box(0, 1e9, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, render_mode=None):
        self.render_mode = render_mode
        self.time = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self.time += 1
        return np.array([self.time], np.float32), 1.0, self.time >= 30, False, {}

    def render(self):
        image = np.full((40, 60, 3), self.time * 8, np.uint8)
        image[:, :20] = 255
        return image


class SteppedVector:
    """Steps a vector in a thread, as a user's program does, and shows it on a page.

    Args:
        envs: The vector.
        options: Options of ``shoal.live.show``.
    """

    def __init__(self, envs, **options):
        self.envs = envs
        self.page = self._show(options)
        self.url = self.page.url
        self._stop = threading.Event()
        self._error = None
        self._thread = threading.Thread(target=self._step)
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def frames(self):
        return self.page.watcher.frames

    def halt(self):
        """Stop stepping; the vector stays open."""
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def close(self):
        try:
            self.halt()
        finally:
            self.envs.close()

    def _show(self, options):
        return shoal.live.show(self.envs, port=0, refresh=0.3, **options)

    def _step(self):
        try:
            self.envs.reset(seed=1)
            self.envs.action_space.seed(1)
            actions = [self.envs.action_space.sample() for _ in range(32)]
            # Steps slowly, to leave time for the browser.
            for k in itertools.takewhile(lambda _: not self._stop.wait(0.005), itertools.count()):
                self.envs.step(actions[k % len(actions)])
        except BaseException as error:
            self._error = error


class FakeTraining(SteppedVector):
    """The page of a training run with made-up records, while its environments are stepped."""

    def __init__(self):
        super().__init__(shoal.make("shoal/HockeyOne-v0", num_envs=16))

    def close(self):
        try:
            self.halt()
        finally:
            self.page.close()
            self.envs.close()

    def _show(self, _):
        # Imported here because it requires an extra.
        from shoal.live._training_page import TrainingPage
        from shoal.train._records import EvaluationRecord, ProgressRecord, RatingRecord

        page = TrainingPage(port=0, picture_share=0.08, refresh=0.3)
        page.begin("hockey_dddqn", ["shooting", "defense", "play"], self.envs)
        for step in range(10_000, 70_000, 10_000):
            page.progress(
                ProgressRecord(
                    step=step,
                    episodes=step // 100,
                    updates=1234,
                    seconds=60.0,
                    phase="defense",
                    phase_number=1,
                    phase_share=0.4,
                    share=0.47,
                    steps_per_second=9000.0,
                    updates_per_second=99.5,
                    mean_reward=3.5,
                    win_rate=step / 100_000 + 0.01,
                    losses={"critic": 0.0123, "actor": -1.27},
                )
            )
        for opponent, step in (("weak", 50_000), ("strong", 60_000)):
            page.evaluation(
                EvaluationRecord(
                    step=step,
                    opponent=opponent,
                    games=200,
                    wins=90,
                    draws=10,
                    losses=100,
                    win_rate=0.45,
                    low=0.38,
                    high=0.52,
                    mean_reward=2.5,
                    mean_length=80.0,
                )
            )
        page.ratings(
            [
                RatingRecord(60_000, "weak", "scripted", 12.1, 14.0, 0.6, 700),
                RatingRecord(60_000, "main", "main", 27.2, 29.0, 0.6, 1200),
            ]
        )
        return page
