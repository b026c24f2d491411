"""A client of the GymAPI: one connection that answers for all slots."""

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
"""The key of an observation under which a slot has its colour picture."""

Picture = npt.NDArray[np.uint8]

_MAY_SHOW_NOTHING = (Status.NOT_EXECUTED, Status.ERROR)
"""What an answer may say without an observation."""


class Durations(NamedTuple):
    """Seconds that a response has taken; 0 where the other side does not tell."""

    process: float = 0.0
    """For the work that was asked for."""
    transport: float = 0.0
    """On the way."""


class GenericGymClient(gymnasium.Env[Any, Any]):
    """Steps what is behind a transport.

    It is a :class:`shoal.remote._device.Device`, which answers for many slots with one request, and
    by itself an environment: slot 0. An action that was not executed leaves the slot as it is, with
    its newest observation, and is told by the info ``status``, as are a repeated observation and an
    error of one slot; :class:`.messages.GymFeedback` says how the other side tells of them.
    Requests cannot be taken back once they are sent: messages have no word for it.

    Args:
        transport: How requests get there. The client owns it, and closes it.
        num_envs: Number of slots; it can be set until the first reset.
        observation_space: The space of one slot's observations.
        action_space: The space of one slot's actions; see also :meth:`set_action_space`.
        render_mode: None, or ``"rgb_array"``: the part ``color_img`` of the observation.
        env_name: The name that is told to the other side.
        expected_duration: Seconds that a step probably takes; see :meth:`expected_duration`.
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
            raise TypeError("observation_space is needed: messages do not tell it")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(
                f"render_mode must be None or one of {self.metadata['render_modes']}, "
                f"got {render_mode!r}"
            )
        if not 0 <= expected_duration < inf:
            raise ValueError(
                f"expected_duration must be a number of seconds, got {expected_duration!r}"
            )
        self.transport = transport
        self.render_mode = render_mode
        self.env_name = env_name
        self.client_id = f"shoal-{uuid4().hex}"
        self.observation_space = self.single_observation_space = observation_space
        self._observations = ObservationCodec(observation_space)
        self._actions: ActionCodec | None = None
        self._latest: dict[int, Any] = {}  # each slot's newest observation, and no other
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
            raise ValueError(f"num_envs must be 1 at least, got {num_envs}")
        self._num_envs = index(num_envs)
        self.declare()

    def set_num_envs(self, num_envs: int) -> None:
        """Choose how many slots there are, before the first reset."""
        self.num_envs = num_envs

    def set_action_space(self, space: Space[Any]) -> None:
        """Set the space of one slot's actions, before a vector is made of the client.

        Raises:
            TypeError: The space has a part of no fixed shape.
        """
        self._actions = ActionCodec(space)
        self.action_space = self.single_action_space = space
        self.declare()

    def declare(self) -> None:
        """Called when slots or spaces have changed, for clients that tell somebody."""

    @property
    def durations(self) -> Durations:
        """How long the newest response has taken, as the other side tells it."""
        return self._durations

    # A device

    def reset_slots(
        self, slots: list[int], seeds: list[int | None], options: dict[str, Any] | None
    ) -> Sequence[Feedback]:
        """Begin new episodes; :mod:`.resets` says how seeds travel.

        Raises:
            ValueError: There are options, for which a request has no place.
            GymAPIError: The other side has failed.
        """
        if options:
            raise ValueError(f"a request has no place for options, got {options!r}")
        seed, action = reset_fields(slots, seeds, self.num_envs)
        return self._feedback(RequestType.RESET, slots, action, seed)

    def expected_duration(self, slots: list[int], actions: list[Any]) -> float:  # noqa: ARG002
        """Seconds that a step of these slots will probably take; 0 where it is not known.

        The other side is told with each STEP, and a transport waits so much longer. Where the
        client is served by :func:`shoal.serve`, those who have connected are told as well. A
        client that knows more about its actions overrides it.
        """
        return self._expected_duration

    def step_slots(self, slots: list[int], actions: list[Any]) -> Sequence[Feedback]:
        """Execute one action for each of these slots, all in one request.

        Raises:
            InvalidActionError: An action does not fit its space; nothing was sent.
            GymAPIError: The other side has failed.
        """
        if self._actions is None:
            raise RuntimeError("there is no action space: call set_action_space before")
        pairs = zip(slots, actions, strict=True)
        action = [self._actions.encode(action, ns=str(slot)) for slot, action in pairs]
        expected = self.expected_duration(slots, actions)
        return self._feedback(RequestType.STEP, slots, action, expected=expected)

    def close(self) -> None:
        """Tell the other side, and close the transport; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        try:
            self._exchange(RequestType.CLOSE)
        except (ConnectionError, TimeoutError):
            return  # there is nobody any more who would want to know
        except (GymAPIError, MessageError) as error:
            warnings.warn(f"closing {self.env_name!r}: {error}", stacklevel=2)
        finally:
            self.transport.close()

    # An environment

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin a new episode of slot 0."""
        super().reset(seed=seed)
        (found,) = self.reset_slots([0], [seed], options)
        return found.observation, _info(found)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Execute an action of slot 0."""
        (found,) = self.step_slots([0], [action])
        return found.observation, found.reward, found.terminated, found.truncated, _info(found)

    def render(self, slots: Sequence[int] | None = None) -> Any:
        """The picture of slot 0, or those of these slots as a list; None without a render mode."""
        if self.render_mode is None:
            return None if slots is None else [None] * len(slots)
        return self.picture(0) if slots is None else [self.picture(slot) for slot in slots]

    def picture(self, slot: int) -> Picture:
        """The colour picture in the newest observation of a slot.

        Raises:
            NotImplementedError: Observations have none.
        """
        space = self.single_observation_space
        if not isinstance(space, spaces.Dict) or COLOR not in space.spaces:
            raise NotImplementedError(f"observations have no {COLOR!r} that could be rendered")
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
        told = response.header
        self._durations = Durations(told.process_duration, told.transport_duration)
        code = told.error_code.value
        if code != ErrorType.SUCCESS:
            named = ErrorType(code).name if code in [*ErrorType] else str(code)
            why = told.error_msg or "it does not say why"
            raise GymAPIError(f"{kind.name} of {self.env_name!r} has failed ({named}): {why}")
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
        answers = self._exchange(kind, action, seed, expected).feedback
        places = _places(answers, slots)
        pairs = zip(slots, places, strict=True)
        # Everything is read before anything is kept: an answer that is wrong changes nothing.
        found = [self._read(kind, slot, answers, place) for slot, place in pairs]
        for slot, feedback in zip(slots, found, strict=True):
            self._latest[slot] = deepcopy(feedback.observation)  # ours, whatever becomes of theirs
        return found

    def _read(
        self, kind: RequestType, slot: int, answers: list[GymFeedback], place: int
    ) -> Feedback:
        """What the answer at this place says of a slot."""
        answer = answers[place]
        source = answers[_source(answers, place)]
        told = read_info(answer.info)
        status = Status.OK if source is answer else Status.DUPLICATE
        # Only a step has something to execute; servers leave the field alone in other answers.
        if kind is RequestType.STEP and not answer.executed:
            status = Status.NOT_EXECUTED
        if told.get(STATUS) == Status.ERROR:
            status = Status.ERROR
        its_info = told if source is answer else read_info(source.info)
        is_new = bool(source.observation) or PARTS in its_info
        if status in _MAY_SHOW_NOTHING and slot in self._latest and not is_new:
            observation = deepcopy(self._latest[slot])
        else:
            observation = self._observations.read(source.observation, its_info)
        told.pop(PARTS, None)
        return Feedback(
            observation, answer.reward, answer.terminated, answer.truncated, told, status
        )


def _places(answers: list[GymFeedback], slots: list[int]) -> list[int]:
    """Where in the response the answer for each slot is: by its name if it has one."""
    if len(answers) != len(slots):
        raise StepResultError(f"got {len(answers)} feedbacks, expected one for each of {slots}")
    names = [answer.ns for answer in answers]
    if not any(name.isdigit() for name in names):  # none, or those of robots
        return list(range(len(slots)))
    wanted = [str(slot) for slot in slots]
    if sorted(names) != sorted(wanted):
        raise StepResultError(f"got feedbacks for the slots {names}, expected {wanted}")
    return [names.index(name) for name in wanted]


def _source(answers: list[GymFeedback], place: int) -> int:
    """Where the observation is that an answer has, or repeats."""
    for _ in answers:
        repeated = answers[place].duplicate
        if repeated < 0:
            return place
        if repeated >= len(answers):
            raise StepResultError(
                f"feedback {place} repeats feedback {repeated}, but there are {len(answers)}"
            )
        place = repeated
    raise StepResultError(f"feedback {place} repeats itself")


def _info(found: Feedback) -> dict[str, Any]:
    info = dict(found.info or {})
    if found.status is not Status.OK:
        info[STATUS] = found.status.value
    return info
