"""The messages of the GymAPI, and their conversion to dicts and JSON.

Floats that are not finite are written as strings: ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
When reading, ``null`` is also NaN, because rosbridge servers write it so, and the literals of
Python's ``json`` module (``NaN``, ``Infinity``) are accepted.
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
    """A message that is not valid in the GymAPI."""


class GymAPIError(RuntimeError):
    """The server has reported a failure; the message is that of the server."""


class RequestType(IntEnum):
    """The type of a request."""

    NONE = 0
    STEP = 1
    RESET = 2
    CLOSE = 3


class ErrorType(IntEnum):
    """The result of a request; all values except ``SUCCESS``, even unlisted ones, are failures."""

    UNDEFINED = 0
    SUCCESS = 1
    FAILURE = 2


class RequestHeader(msgspec.Struct, kw_only=True):
    """The header of a request; ``expected_duration`` is in seconds, 0 if unknown."""

    request_type: RequestType
    client_id: str = ""
    priority: int = 0
    expected_duration: float = 0.0
    blocking: bool = True


class GymAction(msgspec.Struct, kw_only=True):
    """The action of one slot; ``ns`` is the number of the slot as a string."""

    ns: str = ""
    discrete_action: list[int] = []
    continuous_action: list[float] = []


class GymAPIRequest(msgspec.Struct, kw_only=True):
    """A request for some slots at once. A ``seed`` of 0 means none; see :mod:`._resets`."""

    header: RequestHeader
    seed: int = 0
    env_name: str = ""
    action: list[GymAction] = []


class ErrorCode(msgspec.Struct, kw_only=True):
    """An :class:`ErrorType`, or a value that is specific to the server."""

    value: int = ErrorType.UNDEFINED


class ResponseHeader(msgspec.Struct, kw_only=True):
    """The header of a response; durations are in seconds, 0 if unknown."""

    process_duration: float = 0.0
    transport_duration: float = 0.0
    error_code: ErrorCode = msgspec.field(default_factory=ErrorCode)
    error_msg: str = ""


class GymFeedback(msgspec.Struct, kw_only=True):
    """The result of one slot.

    ``duplicate`` is the index of the feedback in the same response whose observation this one
    repeats; its own observation may then be empty. ``info`` is a JSON object as a string, or empty.
    An error in the header of the response concerns all slots; the error of one slot is reported by
    ``"status": "error"`` in its info. If there was an error, or the action was not executed, the
    observation may be empty; the slot then keeps its newest one.
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
    """The response for all slots of a request, in the same order."""

    header: ResponseHeader
    feedback: list[GymFeedback] = []


Message = TypeVar("Message", bound=msgspec.Struct)

_SPECIAL_FLOATS = {"NaN": nan, "Infinity": inf, "-Infinity": -inf, None: nan}

_FLOAT_FIELDS = frozenset(
    {
        "continuous_action",
        "expected_duration",
        "observation",
        "process_duration",
        "reward",
        "transport_duration",
    }
)
"""The fields in which a string or ``null`` represents a float."""


def to_dict(message: msgspec.Struct) -> dict[str, Any]:
    """Convert a message to dicts, lists, strings and finite numbers.

    >>> to_dict(GymAction(ns="3", continuous_action=[0.5, float("-inf")]))
    {'ns': '3', 'discrete_action': [], 'continuous_action': [0.5, '-Infinity']}
    """
    plain: dict[str, Any] = _write_floats(msgspec.to_builtins(message))
    return plain


def to_json(message: msgspec.Struct) -> bytes:
    """Convert a message to JSON."""
    return write_json(message)


def from_dict(data: Any, kind: type[Message]) -> Message:
    """Convert a dict to a message of this kind; unknown fields are ignored.

    Raises:
        MessageError: A field is missing or has the wrong type.

    >>> from_dict({"observation": [1, "a"]}, GymFeedback)
    Traceback (most recent call last):
    shoal.remote.bam._messages.MessageError: GymFeedback: Expected `float`, got `str` - at `$.observation[1]`
    """  # noqa: E501
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError:
        pass  # a message with floats that are not finite, or an invalid one
    try:
        return msgspec.convert(_read_floats(data), kind)
    except msgspec.ValidationError as error:
        raise MessageError(f"{kind.__name__}: {error}") from error


def from_json(text: bytes | str, kind: type[Message]) -> Message:
    """Convert JSON to a message of this kind.

    Raises:
        MessageError: The text is not JSON, or a field is missing or has the wrong type.
    """
    return from_dict(read_json(text), kind)


def read_json(text: bytes | str) -> Any:
    """Parse JSON, which may contain the literals NaN, Infinity and -Infinity.

    Raises:
        MessageError: The text is not JSON.
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
    """Convert data to JSON; floats that are not finite become strings, arrays become lists.

    Raises:
        TypeError: A value cannot be represented in JSON.
    """
    return msgspec.json.encode(_write_floats(msgspec.to_builtins(data, enc_hook=_plain)))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _write_floats(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _write_floats(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        try:
            if isfinite(sum(data)):  # all elements are finite; fast for images
                return data
        except (TypeError, OverflowError):
            pass
        return [_write_floats(value) for value in data]
    if isinstance(data, float) and not isfinite(data):
        return "NaN" if data != data else "Infinity" if data > 0 else "-Infinity"
    return data


def _read_floats(data: Any, field: str = "") -> Any:
    if isinstance(data, dict):
        return {key: _read_floats(value, key) for key, value in data.items()}
    if isinstance(data, list):
        return [_read_floats(value, field) for value in data]
    if field in _FLOAT_FIELDS and (data is None or isinstance(data, str)):
        return _SPECIAL_FLOATS.get(data, data)
    return data
