"""A client of the GymAPI: one connection for all slots."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from copy import deepcopy
from math import inf
from operator import index
from typing import Any, ClassVar, NamedTuple
from uuid import uuid4

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.error import ClosedEnvironmentError

from shoal.errors import SlotNotResetError, StepResultError
from shoal.remote._device import STATUS, Feedback, Status
from shoal.remote.bam._encoding import PARTS, ActionCodec, ObservationCodec, read_info
from shoal.remote.bam._messages import (
    ErrorType,
    GymAction,
    GymAPIError,
    GymAPIRequest,
    GymAPIResponse,
    GymFeedback,
    MessageError,
    RequestHeader,
    RequestType,
)
from shoal.remote.bam._resets import reset_fields
from shoal.remote.bam._transports import GenericTransport

__all__ = ["COLOR", "Durations", "GenericGymClient"]

COLOR = "color_img"
"""The key of the colour image in an observation."""

Picture = npt.NDArray[np.uint8]

_OPTIONAL_OBSERVATION = (Status.NOT_EXECUTED, Status.ERROR)
"""The status of feedbacks that may have no observation."""


class Durations(NamedTuple):
    """Durations of a response in seconds; 0 if the server does not report them."""

    process: float = 0.0
    """The time to process the request."""
    transport: float = 0.0
    """The time to transport the messages."""


class GenericGymClient(gymnasium.Env[Any, Any]):
    """A client that steps the slots of a GymAPI server.

    It is a :class:`shoal.remote._device.Device`, which steps many slots with one request, and also
    an environment, which is slot 0. If an action was not executed, the slot keeps its newest
    observation and the info ``status`` says so; the same info reports a duplicate observation or
    an error of one slot, see :class:`GymFeedback`. The GymAPI cannot cancel a request.

    Args:
        transport: The transport of requests. The client owns and closes it.
        num_envs: Number of slots; can be set until the first reset.
        observation_space: The observation space of one slot.
        action_space: The action space of one slot; see also :meth:`set_action_space`.
        render_mode: None, or ``"rgb_array"`` for the part ``color_img`` of the observation.
        env_name: The name of the environment in requests.
        expected_duration: Expected seconds of a step; see :meth:`expected_duration`.
    """

    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 5}  # type: ignore[misc]

    def __init__(
        self,
        transport: GenericTransport,
        *,
        num_envs: int = 1,
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        render_mode: str | None = None,
        env_name: str = "bam_env",
        expected_duration: float = 0.0,
    ) -> None:
        if observation_space is None:
            raise TypeError("observation_space is required: the GymAPI does not transmit it")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"render_mode must be None or one of {self.metadata['render_modes']}, "
                f"got {render_mode!r}"
            )
        if not 0 <= expected_duration < inf:
            raise ValueError(
                f"expected_duration must be finite and not negative, got {expected_duration!r}"
            )
        self.transport = transport
        self.render_mode = render_mode
        self.env_name = env_name
        self.client_id = f"shoal-{uuid4().hex}"
        self.observation_space = self.single_observation_space = observation_space
        self._observations = ObservationCodec(observation_space)
        self._actions: ActionCodec | None = None
        self._latest: dict[int, Any] = {}  # the newest observation of each slot
        self._expected_duration = float(expected_duration)
        self._durations = Durations()
        self._closed = False
        self.num_envs = num_envs
        if action_space is not None:
            self.set_action_space(action_space)

    @property
    def num_envs(self) -> int:
        """Number of slots."""
        return self._num_envs

    @num_envs.setter
    def num_envs(self, num_envs: int) -> None:
        if index(num_envs) < 1:
            raise ValueError(f"num_envs must be at least 1, got {num_envs}")
        self._num_envs = index(num_envs)
        self.declare()

    def set_num_envs(self, num_envs: int) -> None:
        """Set the number of slots before the first reset."""
        self.num_envs = num_envs

    def set_action_space(self, space: Space[Any]) -> None:
        """Set the action space of one slot, before the client is used by a vector.

        Raises:
            TypeError: The space has a part without fixed shape.
        """
        self._actions = ActionCodec(space)
        self.action_space = self.single_action_space = space
        self.declare()

    def declare(self) -> None:
        """Called when the number of slots or a space has changed; does nothing by default."""

    @property
    def durations(self) -> Durations:
        """The durations that the server has reported in its newest response."""
        return self._durations

    # A device

    def reset_slots(
        self, slots: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> Sequence[Feedback]:
        """Start new episodes; :mod:`._resets` documents the encoding of seeds.

        Raises:
            ValueError: Options are given, which the GymAPI does not support.
            GymAPIError: The server reports a failure.
        """
        if options:
            raise ValueError(f"the GymAPI does not support reset options, got {options!r}")
        seed, action = reset_fields(slots, seeds, self.num_envs)
        return self._feedback(RequestType.RESET, slots, action, seed)

    def expected_duration(self, slots: list[int], actions: list[Any]) -> float:  # noqa: ARG002
        """Return the expected seconds of a step of these slots; 0 if unknown.

        The value is sent with each STEP request and extends the timeout of the transport. If the
        client is hosted by :func:`shoal.serve`, it also extends the timeout of the connected
        clients. Override it if the duration depends on the actions.
        """
        return self._expected_duration

    def step_slots(self, slots: list[int], actions: list[Any]) -> Sequence[Feedback]:
        """Execute one action per slot with one request.

        Raises:
            InvalidActionError: An action is not in its space; nothing was sent.
            GymAPIError: The server reports a failure.
        """
        if self._actions is None:
            raise RuntimeError("the client has no action space: call set_action_space first")
        pairs = zip(slots, actions, strict=True)
        action = [self._actions.encode(action, ns=str(slot)) for slot, action in pairs]
        expected = self.expected_duration(slots, actions)
        return self._feedback(RequestType.STEP, slots, action, expected=expected)

    def close(self) -> None:
        """Send a CLOSE request and close the transport; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._exchange(RequestType.CLOSE)
        except (ConnectionError, TimeoutError):
            return  # the server is gone
        except (GymAPIError, MessageError) as error:
            warnings.warn(f"closing {self.env_name!r}: {error}", stacklevel=2)
        finally:
            self.transport.close()

    # An environment

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a new episode of slot 0."""
        super().reset(seed=seed)
        (feedback,) = self.reset_slots([0], [seed], options)
        return feedback.observation, _info(feedback)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Execute an action of slot 0."""
        (feedback,) = self.step_slots([0], [action])
        observation, reward, terminated, truncated, *_ = feedback
        return observation, reward, terminated, truncated, _info(feedback)

    def render(self, slots: Sequence[int] | None = None) -> Any:
        """Return the image of slot 0, or a list of images; None without a render mode."""
        if self.render_mode is None:
            return None if slots is None else [None] * len(slots)
        return self.picture(0) if slots is None else [self.picture(slot) for slot in slots]

    def picture(self, slot: int) -> Picture:
        """Return the colour image in the newest observation of a slot.

        Raises:
            NotImplementedError: The observation space has no colour image.
            SlotNotResetError: The slot was never reset.
        """
        space = self.single_observation_space
        if not isinstance(space, spaces.Dict) or COLOR not in space.spaces:
            raise NotImplementedError(f"cannot render: the observation space has no {COLOR!r}")
        if slot not in self._latest:
            raise SlotNotResetError(f"slot {slot} has no observation yet: reset it first")
        picture: Picture = self._latest[slot][COLOR].copy()
        return picture

    # Messages

    def _exchange(
        self,
        kind: RequestType,
        action: Sequence[GymAction] = (),
        seed: int = 0,
        expected: float = 0.0,
    ) -> GymAPIResponse:
        header = RequestHeader(
            client_id=self.client_id, request_type=kind, expected_duration=expected
        )
        response = self.transport.step(
            GymAPIRequest(header=header, seed=seed, env_name=self.env_name, action=list(action))
        )
        result = response.header
        self._durations = Durations(result.process_duration, result.transport_duration)
        code = result.error_code.value
        if code != ErrorType.SUCCESS:
            code_name = ErrorType(code).name if code in [*ErrorType] else str(code)
            message = result.error_msg or "no error message"
            raise GymAPIError(f"{kind.name} of {self.env_name!r} failed ({code_name}): {message}")
        return response

    def _feedback(
        self,
        kind: RequestType,
        slots: list[int],
        action: list[GymAction],
        seed: int = 0,
        expected: float = 0.0,
    ) -> list[Feedback]:
        if self._closed:
            raise ClosedEnvironmentError(f"{kind.name}: the client is closed")
        messages = self._exchange(kind, action, seed, expected).feedback
        positions = _positions(messages, slots)
        pairs = zip(slots, positions, strict=True)
        # All feedbacks are decoded before any state changes.
        feedbacks = [self._decode(kind, slot, messages, position) for slot, position in pairs]
        for slot, feedback in zip(slots, feedbacks, strict=True):
            self._latest[slot] = deepcopy(feedback.observation)  # the caller may modify its own
        return feedbacks

    def _decode(
        self, kind: RequestType, slot: int, messages: list[GymFeedback], position: int
    ) -> Feedback:
        """Decode the feedback of a slot."""
        message = messages[position]
        source = messages[_source(messages, position)]
        info = read_info(message.info)
        status = Status.OK if source is message else Status.DUPLICATE
        # Servers need not set ``executed`` in responses to other requests than STEP.
        if kind is RequestType.STEP and not message.executed:
            status = Status.NOT_EXECUTED
        if info.get(STATUS) == Status.ERROR:
            status = Status.ERROR
        source_info = info if source is message else read_info(source.info)
        has_observation = bool(source.observation) or PARTS in source_info
        if status in _OPTIONAL_OBSERVATION and slot in self._latest and not has_observation:
            observation = deepcopy(self._latest[slot])
        else:
            observation = self._observations.read(source.observation, source_info)
        info.pop(PARTS, None)
        return Feedback(
            observation, message.reward, message.terminated, message.truncated, info, status
        )


def _positions(messages: list[GymFeedback], slots: list[int]) -> list[int]:
    """Return the position of each slot's feedback: by ``ns`` if it is a number, else by order."""
    if len(messages) != len(slots):
        raise StepResultError(f"got {len(messages)} feedbacks, expected one for each of {slots}")
    names = [message.ns for message in messages]
    if not any(name.isdigit() for name in names):  # no names, or names of robots
        return list(range(len(slots)))
    expected = [str(slot) for slot in slots]
    if sorted(names) != sorted(expected):
        raise StepResultError(f"got feedbacks for the slots {names}, expected {expected}")
    return [names.index(name) for name in expected]


def _source(messages: list[GymFeedback], position: int) -> int:
    """Return the position of the feedback that has the observation, following duplicates."""
    for _ in messages:
        repeated = messages[position].duplicate
        if repeated < 0:
            return position
        if repeated >= len(messages):
            raise StepResultError(
                f"feedback {position} repeats feedback {repeated}, but there are only "
                f"{len(messages)} feedbacks"
            )
        position = repeated
    raise StepResultError(f"feedback {position} repeats itself")


def _info(feedback: Feedback) -> dict[str, Any]:
    info = dict(feedback.info or {})
    if feedback.status is not Status.OK:
        info[STATUS] = feedback.status.value
    return info
