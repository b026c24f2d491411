"""A transport without a server, which returns samples of the declared spaces."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Protocol

import numpy as np
from gymnasium import Space

from shoal.errors import SlotNotResetError
from shoal.remote.bam._encoding import ActionCodec, ObservationCodec
from shoal.remote.bam._messages import (
    ErrorCode,
    ErrorType,
    GymAPIRequest,
    GymAPIResponse,
    GymFeedback,
    MessageError,
    RequestType,
    ResponseHeader,
)
from shoal.remote.bam._resets import read_reset, slot_of

__all__ = ["MockTransport", "StepFunction"]


class StepFunction(Protocol):
    """Computes the reward or the end of an episode for a step of one slot."""

    def __call__(self, *, step_count: int, env_idx: int, obs: Any, action: Any) -> Any:
        """Compute the value.

        Args:
            step_count: Number of steps of the slot since its reset, before this one.
            env_idx: The slot.
            obs: The observation after the step.
            action: The action.
        """


class MockTransport:
    """Simulates a server.

    Observations are samples of the declared space. Each slot has separate random generators, which
    are seeded by RESET requests, so equal seeds give equal responses. An invalid request gives a
    response with ``ErrorType.FAILURE``.
    """

    def __init__(self) -> None:
        self._cell: _Cell | None = None
        self._fixed_response: GymAPIResponse | None = None

    def declare(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        num_envs: int = 1,
        *,
        reward_fn: StepFunction | None = None,
        terminated_fn: StepFunction | None = None,
    ) -> None:
        """Configure the simulation; all slots start again.

        Args:
            observation_space: The space to sample observations from.
            action_space: The space of actions.
            num_envs: Number of slots.
            reward_fn: Returns the reward of a step, by default uniform in [-1, 1].
            terminated_fn: Returns whether a step ends the episode, by default never.
        """
        self._cell = _Cell(observation_space, action_space, num_envs, reward_fn, terminated_fn)

    def set_mock_response(self, response: GymAPIResponse | None) -> None:
        """Return this response for every STEP and RESET request; None for samples again."""
        self._fixed_response = response

    def step(self, request: GymAPIRequest) -> GymAPIResponse:
        """Return the response to a request."""
        kind = request.header.request_type
        if kind is RequestType.CLOSE:
            return _response([])
        if self._fixed_response is not None:
            return self._fixed_response
        try:
            if self._cell is None:
                raise MessageError("the transport is not configured: call declare first")
            if kind is RequestType.RESET:
                return _response(self._cell.reset(request))
            if kind is RequestType.STEP:
                return _response(self._cell.step(request))
            raise MessageError(f"requests of type {kind.name} are not supported")
        except (MessageError, SlotNotResetError) as error:
            code = ErrorCode(value=ErrorType.FAILURE)
            return GymAPIResponse(header=ResponseHeader(error_code=code, error_msg=str(error)))

    def close(self) -> None:
        """Do nothing."""


def _response(feedback: list[GymFeedback]) -> GymAPIResponse:
    header = ResponseHeader(error_code=ErrorCode(value=ErrorType.SUCCESS))
    return GymAPIResponse(header=header, feedback=feedback)


class _Slot:
    """The random generators and the step counter of one slot."""

    def __init__(self, space: Space[Any]) -> None:
        self._space = deepcopy(space)
        self.steps: int | None = None  # None before the first reset
        self.seed(None)

    def seed(self, seed: int | None) -> None:
        self._space.seed(seed)
        # A different stream than that of the space.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])

    def observe(self) -> Any:
        return self._space.sample()


class _Cell:
    """The simulated slots."""

    def __init__(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        num_envs: int,
        reward_fn: StepFunction | None,
        terminated_fn: StepFunction | None,
    ) -> None:
        self._observations = ObservationCodec(observation_space)
        self._actions = ActionCodec(action_space)
        self._reward_fn = reward_fn
        self._terminated_fn = terminated_fn
        self._slots = [_Slot(observation_space) for _ in range(num_envs)]

    def reset(self, request: GymAPIRequest) -> list[GymFeedback]:
        feedback = []
        for number, seed in read_reset(request, len(self._slots)).items():
            slot = self._slots[number]
            if seed is not None:
                slot.seed(seed)
            slot.steps = 0
            numbers, info = self._observations.encode(slot.observe())
            feedback.append(GymFeedback(ns=str(number), observation=numbers, info=info))
        return feedback

    def step(self, request: GymAPIRequest) -> list[GymFeedback]:
        if not request.action:
            raise MessageError("a STEP request has no action")
        actions: dict[int, Any] = {}
        for position, action in enumerate(request.action):
            number = slot_of(action.ns, position, len(self._slots))
            if number in actions:
                raise MessageError(f"slot {number} is repeated")
            if self._slots[number].steps is None:
                raise SlotNotResetError(f"slot {number} was never reset")
            actions[number] = self._actions.decode(action)
        return [self._step_slot(number, action) for number, action in actions.items()]

    def _step_slot(self, number: int, action: Any) -> GymFeedback:
        slot = self._slots[number]
        observation = slot.observe()
        arguments = {"env_idx": number, "obs": observation, "action": action}
        steps = slot.steps or 0
        slot.steps = steps + 1
        if self._reward_fn is None:
            reward = slot.random.uniform(-1.0, 1.0)
        else:
            reward = self._reward_fn(step_count=steps, **arguments)
        terminated = self._terminated_fn is not None and self._terminated_fn(
            step_count=steps, **arguments
        )
        numbers, info = self._observations.encode(observation)
        return GymFeedback(
            ns=str(number),
            observation=numbers,
            reward=float(reward),
            terminated=bool(terminated),
            info=info,
        )
