"""The messages of the GymAPI, and their forms as plain dicts and as JSON.

Numbers that JSON has no word for are spelled as strings: ``"NaN"``, ``"Infinity"`` and
``"-Infinity"``. When read, ``null`` is NaN as well, since that is how a rosbridge server writes
what is not finite, and the bare words that Python's ``json`` writes are understood.
"""

from __future__ import annotations

import json
from enum import IntEnum
from math import inf, isfinite, nan
from typing import Any, TypeVar

import numpy as np

from shoal.errors import MissingExtraError

try:
    import msgspec
except ImportError as error:
    raise MissingExtraError(
        'the GymAPI needs msgspec, which is not installed: pip install "shoal[remote]"'
    ) from error

__all__ = [
    "ErrorCode",
    "ErrorType",
    "GymAPIError",
    "GymAPIRequest",
    "GymAPIResponse",
    "GymAction",
    "GymFeedback",
    "MessageError",
    "RequestHeader",
    "RequestType",
    "ResponseHeader",
    "from_dict",
    "from_json",
    "read_json",
    "to_dict",
    "to_json",
    "write_json",
]


class MessageError(ValueError):
    """A message that is not what the GymAPI says; nothing was made of it."""


class GymAPIError(RuntimeError):
    """The other side has answered that it failed; the message is its own."""


class RequestType(IntEnum):
    """What a request asks for."""

    NONE = 0
    STEP = 1
    RESET = 2
    CLOSE = 3


class ErrorType(IntEnum):
    """How a request went; every number but ``SUCCESS`` is a failure, also one not listed here."""

    UNDEFINED = 0
    SUCCESS = 1
    FAILURE = 2


class RequestHeader(msgspec.Struct, kw_only=True):
    """Who asks, and for what; ``expected_duration`` is in seconds, 0 where it is not known."""

    request_type: RequestType
    client_id: str = ""
    priority: int = 0
    expected_duration: float = 0.0
    blocking: bool = True


class GymAction(msgspec.Struct, kw_only=True):
    """The action of one slot; ``ns`` is the slot's number as text."""

    ns: str = ""
    discrete_action: list[int] = []
    continuous_action: list[float] = []


class GymAPIRequest(msgspec.Struct, kw_only=True):
    """A question for some slots at once. ``seed`` is 0 for none; see :mod:`.resets`."""

    header: RequestHeader
    seed: int = 0
    env_name: str = ""
    action: list[GymAction] = []


class ErrorCode(msgspec.Struct, kw_only=True):
    """An :class:`ErrorType`, or a number that only the other side knows."""

    value: int = ErrorType.UNDEFINED


class ResponseHeader(msgspec.Struct, kw_only=True):
    """How it went, and the seconds that it took, 0 where they are not told."""

    process_duration: float = 0.0
    transport_duration: float = 0.0
    error_code: ErrorCode = msgspec.field(default_factory=ErrorCode)
    error_msg: str = ""


class GymFeedback(msgspec.Struct, kw_only=True):
    """The answer for one slot.

    ``duplicate`` is the index of the feedback, in the same response, whose observation this one
    repeats; its own may then be empty. ``info`` is a JSON object as text, or empty. An error has no
    field here, and one in the header is of all slots: that of one slot is told by its info, with
    ``"error"`` under ``"status"``. An answer that tells of an error, or was not executed, may do
    without an observation; the newest one then stays.
    """

    ns: str = ""
    observation: list[float] = []
    reward: float = 0.0
    terminated: bool = False
    truncated: bool = False
    executed: bool = True
    duplicate: int = -1
    info: str = ""


class GymAPIResponse(msgspec.Struct, kw_only=True):
    """The answer for all slots of a request, in its order."""

    header: ResponseHeader
    feedback: list[GymFeedback] = []


Message = TypeVar("Message", bound=msgspec.Struct)

_SPELLED = {"NaN": nan, "Infinity": inf, "-Infinity": -inf, None: nan}

_NUMBERS = frozenset(
    {
        "continuous_action",
        "expected_duration",
        "observation",
        "process_duration",
        "reward",
        "transport_duration",
    }
)
"""The fields in which a string or ``null`` stands for a number."""


def to_dict(message: msgspec.Struct) -> dict[str, Any]:
    """A message as dicts, lists, strings and numbers, all of them finite.

    >>> to_dict(GymAction(ns="3", continuous_action=[0.5, float("-inf")]))
    {'ns': '3', 'discrete_action': [], 'continuous_action': [0.5, '-Infinity']}
    """
    plain: dict[str, Any] = _spelled(msgspec.to_builtins(message))
    return plain


def to_json(message: msgspec.Struct) -> bytes:
    """A message as JSON."""
    return write_json(message)


def from_dict(data: Any, kind: type[Message]) -> Message:
    """The message of this kind that a dict stands for; fields that are not known are left out.

    Raises:
        MessageError: A field is missing, or has another type; the error says which.

    >>> from_dict({"observation": [1, "a"]}, GymFeedback)
    Traceback (most recent call last):
    shoal.remote.bam._messages.MessageError: GymFeedback: Expected `float`, got `str` - at `$.observation[1]`
    """  # noqa: E501
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        pass  # most messages are finite, and are spared the walk
    try:
        return msgspec.convert(_unspelled(data), kind)
    except msgspec.ValidationError as error:
        raise MessageError(f"{kind.__name__}: {error}") from error


def from_json(text: bytes | str, kind: type[Message]) -> Message:
    """The message of this kind that a JSON text stands for.

    Raises:
        MessageError: It is no JSON, or a field is missing or has another type.
    """
    return from_dict(read_json(text), kind)


def read_json(text: bytes | str) -> Any:
    """What a JSON text says; it may have the bare words NaN, Infinity and -Infinity.

    Raises:
        MessageError: It is no JSON.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        start = text[:60]
        raise MessageError(f"expected JSON, got {start!r}: {error}") from error


def write_json(data: Any) -> bytes:
    """Data as JSON, numbers that are not finite by their names; arrays become lists.

    Raises:
        TypeError: There is something among it that JSON has no form for.
    """
    return msgspec.json.encode(_spelled(msgspec.to_builtins(data, enc_hook=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _spelled(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _spelled(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        try:
            if isfinite(sum(data)):  # then each of them is; thousands of pixels in one go
                return data
        except (TypeError, OverflowError):
            pass
        return [_spelled(value) for value in data]
    if isinstance(data, float) and not isfinite(data):
        return "NaN" if data != data else "Infinity" if data > 0 else "-Infinity"
    return data


def _unspelled(data: Any, field: str = "") -> Any:
    if isinstance(data, dict):
        return {key: _unspelled(value, key) for key, value in data.items()}
    if isinstance(data, list):
        return [_unspelled(value, field) for value in data]
    if field in _NUMBERS and (data is None or isinstance(data, str)):
        return _SPELLED.get(data, data)
    return data
