"""A client that needs no server."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space, spaces

from shoal.remote.bam._client import COLOR, GenericGymClient, Picture
from shoal.remote.bam._transports import GenericTransport, MockTransport
from shoal.remote.bam._transports.mock import StepFunction

__all__ = ["MockEnv"]

_SIDE = 32  # pixels


class MockEnv(GenericGymClient):
    """A client for tests, which simulates a robot.

    Args:
        transport: By default a new :class:`MockTransport`. A ``MockTransport`` is configured with
            the spaces and functions; other transports are used unchanged.
        obs: Whether observations have a part ``"obs"``, four numbers in [-1, 1].
        color: Whether observations have a part ``"color_img"``, a colour image.
        depth: Whether observations have a part ``"depth_img"``, a depth image. Without any of these
            three parts, an observation is an array of four numbers in [-1, 1].
        observation_space: The observation space, instead of these parts.
        action_space: The action space, by default ``Discrete(2)``.
        env_to_mock: An environment that provides default spaces. It is not stepped.
        reward_fn: A function that returns the reward of a step; see :class:`StepFunction`.
        terminated_fn: A function that returns whether a step ends the episode.
        render_mode: None, or ``"rgb_array"`` for the slot's colour image, or a grey one.
        expected_duration: Expected seconds of a step, which requests contain.
    """

    def __init__(
        self,
        transport: GenericTransport | None = None,
        *,
        obs: bool = False,
        color: bool = False,
        depth: bool = False,
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        env_to_mock: gymnasium.Env[Any, Any] | None = None,
        reward_fn: StepFunction | None = None,
        terminated_fn: StepFunction | None = None,
        render_mode: str | None = None,
        expected_duration: float = 0.0,
    ) -> None:
        if env_to_mock is not None:
            if observation_space is None:
                observation_space = env_to_mock.observation_space
            if action_space is None:
                action_space = env_to_mock.action_space
        if observation_space is None:
            observation_space = _observation_space(obs, color, depth)
        elif obs or color or depth:
            raise ValueError(
                "obs, color and depth define the observation space: do not pass another one"
            )
        self._reward_fn = reward_fn
        self._terminated_fn = terminated_fn
        super().__init__(
            MockTransport() if transport is None else transport,
            observation_space=observation_space,
            action_space=spaces.Discrete(2) if action_space is None else action_space,
            render_mode=render_mode,
            env_name="MockEnv",
            expected_duration=expected_duration,
        )

    def declare(self) -> None:
        """Configure the mock transport."""
        if isinstance(self.transport, MockTransport) and self._actions is not None:
            self.transport.declare(
                self.single_observation_space,
                self.single_action_space,
                self.num_envs,
                reward_fn=self._reward_fn,
                terminated_fn=self._terminated_fn,
            )

    def picture(self, slot: int) -> Picture:
        """Return the colour image of a slot, or a grey one."""
        space = self.single_observation_space
        if isinstance(space, spaces.Dict) and COLOR in space.spaces:
            return super().picture(slot)
        return np.full((_SIDE, _SIDE, 3), 128, np.uint8)


def _observation_space(obs: bool, color: bool, depth: bool) -> Space[Any]:
    numbers = spaces.Box(-1.0, 1.0, (4,), np.float32)
    if not (obs or color or depth):
        return numbers
    parts: dict[str, Space[Any]] = {}
    if obs:
        parts["obs"] = numbers
    if color:
        parts[COLOR] = spaces.Box(0, 255, (_SIDE, _SIDE, 3), np.uint8)
    if depth:
        parts["depth_img"] = spaces.Box(0.0, 1.0, (_SIDE, _SIDE, 1), np.float32)
    return spaces.Dict(parts)
