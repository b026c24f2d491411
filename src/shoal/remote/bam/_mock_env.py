"""A client that needs no machine."""

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
    """Stands in for a robot while code around it is tried.

    Args:
        transport: A :class:`MockTransport` is told of the spaces and functions, and answers by
            them; made if it is left out. Any other transport is used as it is.
        obs: Whether observations have a part ``"obs"``, four numbers in [-1, 1].
        color: Whether they have a part ``"color_img"``, a colour picture.
        depth: Whether they have a part ``"depth_img"``, a distance for each pixel. Without any of
            the three parts an observation is four numbers in [-1, 1], and no dict.
        observation_space: The space of observations, instead of these parts.
        action_space: The space of actions; two choices if it is left out.
        env_to_mock: An environment whose spaces are used where none are given. It is not stepped.
        reward_fn: Called for the reward of each step; see :class:`.transports.mock.StepFunction`.
        terminated_fn: Called for whether a step ends the episode.
        render_mode: None, or ``"rgb_array"``: the slot's colour picture, or a grey one.
        expected_duration: Seconds that a step probably takes, which a server would be told.
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
            raise ValueError("obs, color and depth say the observation space: do not give another")
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
        """Tell the transport what to mock."""
        if isinstance(self.transport, MockTransport) and self._actions is not None:
            self.transport.declare(
                self.single_observation_space,
                self.single_action_space,
                self.num_envs,
                reward_fn=self._reward_fn,
                terminated_fn=self._terminated_fn,
            )

    def picture(self, slot: int) -> Picture:
        """The colour picture of a slot, or a grey one."""
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
