"""Hockey with the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._envs.hockey.env import HockeyEnv

__all__ = ["KEYS", "HumanOpponent", "Policy", "play"]

Policy = Callable[[npt.NDArray[np.float32]], npt.ArrayLike]
"""A function from the 18 elements of an observation to the 4 elements of an action."""

KEYS = "arrows: move, W and S: turn, space: shoot, escape: quit"

_PAUSE_FRAMES = 40
"""The number of frames for which the end of an episode stays visible."""


class HumanOpponent:
    """A player controlled by the keyboard: arrows move, W and S turn, space shoots.

    Keys are read from the window of the environment, so call ``env.render("human")`` every step.

    Args:
        env: The environment.
        player: The number of the player, 1 or 2.
    """

    def __init__(self, env: HockeyEnv, player: int = 1) -> None:
        if player not in (1, 2):
            raise ValueError(f"player must be 1 or 2, got {player!r}")
        self.env = env
        self.player = player

    def act(self, obs: Any = None) -> npt.NDArray[np.float64]:  # noqa: ARG002
        """Return the action for the keys that are held down; the observation is ignored."""
        window = self.env.window
        # The frame of reference of the second player is rotated by 180 degrees.
        sign = 1.0 if self.player == 1 else -1.0
        pairs = (("left", "right", sign), ("down", "up", sign), ("w", "s", 1.0))
        numbers = [
            size * (window.is_pressed(more) - window.is_pressed(less)) for less, more, size in pairs
        ]
        shoots = float(window.is_pressed("space"))
        return np.array([*numbers, shoots][: self.env.num_actions])


def play(env: HockeyEnv, policy: Policy, max_steps: int | None = None) -> tuple[int, int]:
    """Play episodes against a policy until the window is closed.

    Args:
        env: The environment.
        policy: The policy of the second player.
        max_steps: Stop after this many steps.

    Returns:
        The goals of the human player and the policy.
    """
    human, goals, steps = HumanOpponent(env), [0, 0], 0
    env.reset()
    while not env.window.is_closed() and (max_steps is None or steps < max_steps):
        env.window.set_title(f"You {goals[0]} : {goals[1]}      ({KEYS})")
        env.render("human")
        second = np.asarray(policy(env.obs_agent_two()), np.float64)
        if second.shape not in ((4,), (env.num_actions,)):
            raise ValueError(f"policy must return 4 numbers, got an array of shape {second.shape}")
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
    for _ in range(_PAUSE_FRAMES):
        if env.window.is_closed():
            break
        env.render("human")
