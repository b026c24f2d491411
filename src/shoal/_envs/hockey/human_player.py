"""Hockey for people, on a keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._envs.hockey.env import HockeyEnv

__all__ = ["KEYS", "HumanOpponent", "Policy", "play"]

Policy = Callable[[npt.NDArray[np.float32]], npt.ArrayLike]
"""From what a player sees, 18 numbers, to what it does, 4 numbers."""

KEYS = "arrows: move, W and S: turn, space: shoot, escape: leave"

_BETWEEN = 40
"""How many pictures a goal is shown for."""


class HumanOpponent:
    """A player who sits at the keyboard, and looks at the window of a match.

    The keys: arrows to move, W and S to turn, space to shoot.

    Args:
        env: The match, which is shown by ``render``.
        player: Which of both players this is, 1 or 2.
    """

    def __init__(self, env: HockeyEnv, player: int = 1) -> None:
        if player not in (1, 2):
            raise ValueError(f"player must be 1 or 2, got {player!r}")
        self.env = env
        self.player = player

    def act(self, obs: Any = None) -> npt.NDArray[np.float64]:  # noqa: ARG002 - it has eyes
        """What the keys say that are held down now."""
        window = self.env.window
        # The second player sees the rink turned by half.
        sign = 1.0 if self.player == 1 else -1.0
        pairs = (("left", "right", sign), ("down", "up", sign), ("w", "s", 1.0))
        numbers = [
            size * (window.is_pressed(more) - window.is_pressed(less)) for less, more, size in pairs
        ]
        shoots = float(window.is_pressed("space"))
        return np.array([*numbers, shoots][: self.env.num_actions])


def play(env: HockeyEnv, policy: Policy, max_steps: int | None = None) -> tuple[int, int]:
    """Let a person play against a policy, match after match, until that person leaves.

    Args:
        env: What is played.
        policy: Plays for the second player.
        max_steps: Leave after so many steps.

    Returns:
        The goals of both.
    """
    human, goals, steps = HumanOpponent(env), [0, 0], 0
    env.reset()
    while not env.window.is_left() and (max_steps is None or steps < max_steps):
        env.window.say(f"You {goals[0]} : {goals[1]}      ({KEYS})")
        env.render("human")
        second = np.asarray(policy(env.obs_agent_two()), np.float64)
        if second.shape not in ((4,), (env.num_actions,)):
            raise ValueError(f"a policy gives 4 numbers, got an array of shape {second.shape}")
        second = second[: env.num_actions]
        _, _, terminated, truncated, info = env.step(np.hstack([human.act(), second]))
        steps += 1
        if terminated or truncated:
            if terminated:
                goals[0 if info["winner"] == 1 else 1] += 1
            _pause(env)
            env.reset()
    return goals[0], goals[1]


def _pause(env: HockeyEnv) -> None:
    for _ in range(_BETWEEN):
        if env.window.is_left():
            break
        env.render("human")
