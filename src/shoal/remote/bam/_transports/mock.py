"""A transport that answers by itself, with samples of the declared spaces."""

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
    """Says something of a step of one slot."""

    def __call__(self, *, step_count: int, env_idx: int, obs: Any, action: Any) -> Any:
        """Say it.

        Args:
            step_count: How many steps the slot has made since its reset, before this one.
            env_idx: The slot.
            obs: The observation that the step leads to.
            action: The action that was sent.
        """


class MockTransport:
    """Answers requests without a machine.

    Observations are samples of the declared space. Each slot draws from generators of its own,
    which a seed in a RESET request seeds, so the same seeds give the same answers. What is wrong
    with a request is said as a server would, by a response with ``ErrorType.FAILURE``.
    """

    def __init__(self) -> None:
        self._cell: _Cell | None = None
        self._fixed: GymAPIResponse | None = None

    def declare(
        self,
        observation_space: Space[Any],
        action_space: Space[Any],
        num_envs: int = 1,
        *,
        reward_fn: StepFunction | None = None,
        terminated_fn: StepFunction | None = None,
    ) -> None:
        """Say what is mocked; slots begin anew.

        Args:
            observation_space: What observations are samples of.
            action_space: What actions must fit.
            num_envs: Number of slots.
            reward_fn: Called for the reward of each step; uniform in [-1, 1] without.
            terminated_fn: Called for whether a step ends the episode; it never does without.
        """
        self._cell = _Cell(observation_space, action_space, num_envs, reward_fn, terminated_fn)

    def set_mock_response(self, response: GymAPIResponse | None) -> None:
        """Give this response to each STEP and RESET from now on; None for samples again."""
        self._fixed = response

    def step(self, request: GymAPIRequest) -> GymAPIResponse:
        """Answer a request."""
        kind = request.header.request_type
        if kind is RequestType.CLOSE:
            return _response([])
        if self._fixed is not None:
            return self._fixed
        try:
            if self._cell is None:
                raise MessageError("nothing was declared that could be mocked")
            if kind is RequestType.RESET:
                return _response(self._cell.reset(request))
            if kind is RequestType.STEP:
                return _response(self._cell.step(request))
            raise MessageError(f"there is no answer to a request of type {kind.name}")
        except (MessageError, SlotNotResetError) as error:
            code = ErrorCode(value=ErrorType.FAILURE)
            return GymAPIResponse(header=ResponseHeader(error_code=code, error_msg=str(error)))

    def close(self) -> None:
        """Nothing is held."""


def _response(feedback: list[GymFeedback]) -> GymAPIResponse:
    header = ResponseHeader(error_code=ErrorCode(value=ErrorType.SUCCESS))
    return GymAPIResponse(header=header, feedback=feedback)


class _Slot:
    """The generators of one slot, and how far it is."""

    def __init__(self, space: Space[Any]) -> None:
        self._space = deepcopy(space)
        self.steps: int | None = None  # None: it was never reset
        self.seed(None)

    def seed(self, seed: int | None) -> None:
        self._space.seed(seed)
        # Not the numbers that the space draws from the same seed.
        self.random = np.random.default_rng(None if seed is None else [seed, 1])

    def observe(self) -> Any:
        return self._space.sample()


class _Cell:
    """What stands behind the transport: so many slots of one kind."""

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
        answers = []
        for number, seed in read_reset(request, len(self._slots)).items():
            slot = self._slots[number]
            if seed is not None:
                slot.seed(seed)
            slot.steps = 0
            numbers, info = self._observations.encode(slot.observe())
            answers.append(GymFeedback(ns=str(number), observation=numbers, info=info))
        return answers

    def step(self, request: GymAPIRequest) -> list[GymFeedback]:
        if not request.action:
            raise MessageError("a STEP request has no action")
        actions: dict[int, Any] = {}
        for place, action in enumerate(request.action):
            number = slot_of(action.ns, place, len(self._slots))
            if number in actions:
                raise MessageError(f"slot {number} is named twice")
            if self._slots[number].steps is None:
                raise SlotNotResetError(f"slot {number} has never been reset")
            actions[number] = self._actions.decode(action)
        return [self._stepped(number, action) for number, action in actions.items()]

    def _stepped(self, number: int, action: Any) -> GymFeedback:
        slot = self._slots[number]
        observation = slot.observe()
        told = {"env_idx": number, "obs": observation, "action": action}
        steps = slot.steps or 0
        slot.steps = steps + 1
        if self._reward_fn is None:
            reward = slot.random.uniform(-1.0, 1.0)
        else:
            reward = self._reward_fn(step_count=steps, **told)
        terminated = self._terminated_fn is not None and self._terminated_fn(
            step_count=steps, **told
        )
        numbers, info = self._observations.encode(observation)
        return GymFeedback(
            ns=str(number),
            observation=numbers,
            reward=float(reward),
            terminated=bool(terminated),
            info=info,
        )
