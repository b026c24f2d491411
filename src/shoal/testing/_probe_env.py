"""An environment whose observations and infos reveal how it was used."""

from __future__ import annotations

from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

__all__ = ["ProbeEnv"]


class ProbeEnv(gymnasium.Env[Any, Any]):
    """Has nested observations that depend on seed, actions and time, and random episode ends.

    Args:
        label: Reported in infos, and readable by ``call``.
        fail_at: The step, counted over the environment's lifetime, at which ``step`` raises.
        mean_length: Mean number of steps of an episode.
    """

    metadata = {"render_modes": ["ansi"]}  # noqa: RUF012 - as in Gymnasium
    open_count: ClassVar[int] = 0

    observation_space = spaces.Dict(
        {
            "vector": spaces.Box(-np.inf, np.inf, (3,), np.float32),
            "inner": spaces.Tuple(
                (spaces.Discrete(1_000_000), spaces.Box(0, 255, (2, 2), np.uint8))
            ),
            "word": spaces.Text(12),
        }
    )
    action_space = spaces.Dict(
        {"move": spaces.Discrete(5, start=-2), "push": spaces.Box(-1, 1, (2,), np.float64)}
    )

    def __init__(self, label: int = 0, fail_at: int | None = None, mean_length: int = 7) -> None:
        self.render_mode = "ansi"
        self.label = label
        self.total_steps = 0
        self._fail_at = fail_at
        self._mean_length = mean_length
        self._time = 0
        self._open = True
        ProbeEnv.open_count += 1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; the info contains the options."""
        super().reset(seed=seed)
        self._time = 0
        return self._observe(0.0), {"options": str(options), "label": self.label}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Step the environment; every third step has an info."""
        assert action in self.action_space, f"got {action!r}"
        if self._fail_at is not None and self.total_steps >= self._fail_at:
            raise ArithmeticError(f"environment {self.label} fails as asked")
        self.total_steps += 1
        self._time += 1
        pushed = float(action["push"].sum()) + int(action["move"])
        ends = self.np_random.random(2) < 1 / (2 * self._mean_length)
        info: dict[str, Any] = {}
        if self.total_steps % 3 == 0:
            info = {"time": self._time, "detail": {"pushed": pushed, "label": str(self.label)}}
        return self._observe(pushed), pushed, bool(ends[0]), bool(ends[1]), info

    def _observe(self, pushed: float) -> dict[str, Any]:
        noise = self.np_random.standard_normal(3)
        return {
            "vector": (noise + pushed).astype(np.float32),
            "inner": (
                np.int64(self.np_random.integers(1_000_000)),
                self.np_random.integers(0, 256, (2, 2), np.uint8),
            ),
            "word": f"t{self._time}",
        }

    def render(self) -> str:
        """Render the label and the time as text."""
        return f"{self.label}@{self._time}"

    def close(self) -> None:
        """Close the environment, and decrement ``ProbeEnv.open_count``."""
        if self._open:
            self._open = False
            ProbeEnv.open_count -= 1
