"""Encoding of plain values: infos, options, arguments and results.

Types are preserved: tuples, NumPy scalars and arrays with their dtypes, integers of any size.
Instances of derived classes become instances of their base class. Decoding cannot execute code:
only numbers, strings, bytes and containers of them are supported, with dtypes from a fixed list.
Clients cannot send values of other types; for such a value of a server, an :class:`Unsent` is sent.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import GraphInstance
from msgspec import DecodeError, msgpack

from shoal.errors import ProtocolError

__all__ = ["Unsent", "dtype_code", "dtype_of", "pack_values", "unpack_values"]

Bytes = bytes | bytearray | memoryview

_DTYPES = {
    np.dtype(name).str: np.dtype(name)
    for name in (
        *("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"),
        *("<f2", "<f4", "<f8", "<c8", "<c16"),
    )
}
_ARRAY_HEAD = struct.Struct("<12sB")
_MSGPACK_INTEGERS = range(-(2**63), 2**64)
_MAX_OTHER_KEYS = 256
_MAX_DEPTH = 40
_LAST_CODE_POINT = 0x10FFFF
_TEXT_CODE = re.compile(r"(<U|\|S)[1-9][0-9]{0,8}")


_PLAIN: tuple[type[Any], ...] = (int, float, str, bytes, dict, list, tuple)
"""Base classes that values of derived classes are converted to."""


class _Code(IntEnum):
    """The type of a msgpack extension."""

    TUPLE = 1
    DICT = 2  # with keys other than strings
    GRAPH = 3
    INTEGER = 4  # beyond 64 bits
    ARRAY = 5
    SCALAR = 6
    OBJECTS = 7  # an array of dtype object
    TEXT = 8  # a NumPy string or bytes scalar
    UNSENT = 9
    COMPLEX = 10


@dataclass(frozen=True)
class Unsent:
    """A placeholder for a value that cannot be sent: the name of its type and its ``repr``."""

    kind: str
    text: str


def dtype_code(dtype: np.dtype[Any]) -> str:
    """Return the code of a dtype.

    Raises:
        TypeError: The dtype is not supported, or not in native byte order.
    """
    code = dtype.newbyteorder("<").str
    if not dtype.isnative:
        raise TypeError(f"dtype {dtype} cannot be sent, use {dtype.newbyteorder('=')}")
    if code not in _DTYPES:
        raise TypeError(f"dtype {dtype} cannot be sent, expected one of {[*_DTYPES]}")
    return code


def dtype_of(code: str) -> np.dtype[Any]:
    """Return the dtype of a code.

    Raises:
        ProtocolError: The dtype is not supported.
    """
    dtype = _DTYPES.get(code)
    if dtype is None:
        raise ProtocolError(f"dtype {code!r} is not supported, expected one of {[*_DTYPES]}")
    return dtype


def _is_text(code: str) -> bool:
    """Whether this is the code of a NumPy string dtype."""
    return _TEXT_CODE.fullmatch(code) is not None


def _are_safe_keys(keys: Collection[Any]) -> bool:
    """Whether these keys cannot be used for a hash collision attack.

    An attacker can choose many keys of the same hash, which makes a dict quadratic. This is not
    possible with strings, bytes and 64-bit integers, so the number of other keys is limited.
    """
    others = sum(
        not (type(key) in (str, bytes) or (type(key) is int and key in _MSGPACK_INTEGERS))
        for key in keys
    )
    return others <= _MAX_OTHER_KEYS


def _is_unicode(text: str) -> bool:
    """Whether a string can be encoded as UTF-8; file names may contain surrogates."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# Encoding


def pack_values(value: Any, *, strict: bool = False) -> bytes:
    """Encode a value; with ``strict``, a value that cannot be sent raises TypeError.

    >>> unpack_values(pack_values({"pair": (1, np.float32(0.5))}))
    {'pair': (1, np.float32(0.5))}
    >>> unpack_values(pack_values({1, 2}))
    Unsent(kind='set', text='{1, 2}')
    """
    return msgpack.encode(_Packer(strict).sendable(value, 0))


class _Packer:
    """Converts values to those that msgpack supports."""

    def __init__(self, strict: bool) -> None:
        self._strict = strict

    def sendable(self, value: Any, depth: int) -> Any:
        kind = type(value)
        if value is None or kind in (bool, float, bytes):
            return value
        if kind is str:
            return value if _is_unicode(value) else self._unsent(value)
        if kind is complex:
            return _extension(_Code.COMPLEX, [value.real, value.imag])
        if kind is int:
            fits = value in _MSGPACK_INTEGERS
            return value if fits else msgpack.Ext(_Code.INTEGER.value, hex(value).encode())
        if depth < _MAX_DEPTH:
            if kind is list:
                return self._all(value, depth)
            if kind is dict:
                return self._dict(value, depth)
            if kind is tuple or kind is GraphInstance:
                code = _Code.TUPLE if kind is tuple else _Code.GRAPH
                return _extension(code, self._all(value, depth))
            if kind is np.ndarray or isinstance(value, np.generic):
                return self._array(value, depth)
            for plain in _PLAIN:
                if isinstance(value, plain):  # for example an enum, an OrderedDict or a named tuple
                    return self.sendable(plain(value), depth)
        return self._unsent(value)

    def _all(self, items: Any, depth: int) -> list[Any]:
        return [self.sendable(item, depth + 1) for item in items]

    def _dict(self, value: dict[Any, Any], depth: int) -> Any:
        if all(type(key) is str and _is_unicode(key) for key in value):
            return {key: self.sendable(item, depth + 1) for key, item in value.items()}
        if not _are_safe_keys(value):
            return self._unsent(value)
        return _extension(_Code.DICT, [self._all(pair, depth) for pair in value.items()])

    def _array(self, value: Any, depth: int) -> Any:
        array = np.asarray(value)
        is_array = isinstance(value, np.ndarray)
        if array.dtype == object:
            items = self._all(array.ravel().tolist(), depth)
            return _extension(_Code.OBJECTS, [list(array.shape), items])
        if array.dtype.kind in "US" and not is_array:
            item = value.item()
            is_sendable = isinstance(item, bytes) or _is_unicode(item)
            return _extension(_Code.TEXT, [item]) if is_sendable else self._unsent(value)
        code = array.dtype.newbyteorder("<").str
        if code not in _DTYPES and not _is_text(code):
            return self._unsent(value)
        head = _ARRAY_HEAD.pack(code.encode(), array.ndim)
        shape = struct.pack(f"<{array.ndim}Q", *array.shape)
        data = np.ascontiguousarray(array, code).tobytes()
        kind = _Code.ARRAY if is_array else _Code.SCALAR
        return msgpack.Ext(kind.value, head + shape + data)

    def _unsent(self, value: Any) -> msgpack.Ext:
        kind = type(value).__qualname__
        try:
            text = repr(value)[:1000].encode(errors="backslashreplace").decode()
        except Exception as error:
            text = f"(repr failed: {error!r})"
        if self._strict:
            raise TypeError(
                f"{text} cannot be sent: {_problem(value)}; expected a plain value (numbers, "
                "strings, bytes, arrays of numbers or strings, and lists, tuples and dicts of them)"
            )
        return _extension(_Code.UNSENT, [kind, text])


def _problem(value: Any) -> str:
    if isinstance(value, np.ndarray | np.generic) and not isinstance(value, str):
        return f"its dtype is {value.dtype}"
    if isinstance(value, str):
        return "it contains a surrogate"
    return f"its type is {type(value).__qualname__}"


def _extension(code: _Code, parts: list[Any]) -> msgpack.Ext:
    return msgpack.Ext(code.value, msgpack.encode(parts))


# Decoding


def unpack_values(data: Bytes) -> Any:
    """Decode a value.

    Raises:
        ProtocolError: The bytes are not an encoded value.
    """
    try:
        return _decode(msgpack.decode(data, ext_hook=_Extension), 0)
    except (DecodeError, RecursionError, ValueError, TypeError, ArithmeticError) as error:
        raise ProtocolError(f"invalid value: {error}") from error


@dataclass(frozen=True)
class _Extension:
    """A msgpack extension that is not decoded yet."""

    code: int
    data: Bytes


def _decode(value: Any, depth: int) -> Any:
    kind = type(value)
    if depth > 3 * _MAX_DEPTH + 3:
        raise ProtocolError("a value is nested too deeply")
    if kind is list:
        return [_decode(item, depth + 1) for item in value]
    if kind is dict:
        if not all(type(key) is str for key in value):
            raise ProtocolError("a dict has keys that are not strings")
        return {key: _decode(item, depth + 1) for key, item in value.items()}
    if kind is _Extension:
        return _decode_extension(value, depth)
    if value is not None and kind not in (bool, int, float, str, bytes):
        raise ProtocolError(f"a value has the type {kind.__name__}")
    return value


def _decode_extension(extension: _Extension, depth: int) -> Any:
    if extension.code in _FROM_BYTES:
        return _FROM_BYTES[extension.code](extension.data)
    make = _FROM_PARTS.get(extension.code)
    if make is None:
        raise ProtocolError(f"unknown extension {extension.code}")
    parts = msgpack.decode(extension.data, type=list, ext_hook=_Extension)
    return make(*_decode(parts, depth + 1))


def _integer(data: Bytes) -> int:
    return int(bytes(data), 16)


def _array(data: Bytes) -> npt.NDArray[Any]:
    if len(data) < _ARRAY_HEAD.size:
        raise ProtocolError("an array is truncated")
    padded, dimensions = _ARRAY_HEAD.unpack_from(data)
    code = padded.rstrip(b"\0").decode("ascii")
    dtype = np.dtype(code) if _is_text(code) else dtype_of(code)
    start = _ARRAY_HEAD.size + 8 * dimensions
    if len(data) < start:
        raise ProtocolError("an array is truncated")
    shape = struct.unpack_from(f"<{dimensions}Q", data, _ARRAY_HEAD.size)
    if math.prod(shape) * dtype.itemsize != len(data) - start:
        raise ProtocolError(f"the size of an array does not match shape {shape} and dtype {dtype}")
    array = np.frombuffer(data, dtype, math.prod(shape), start).reshape(shape).copy()
    is_invalid = dtype == np.bool_ and (array.view(np.uint8) > 1).any()
    if is_invalid or (dtype.kind == "U" and (_code_points(array) > _LAST_CODE_POINT).any()):
        raise ProtocolError(f"an array of dtype {dtype} contains invalid values")
    return array


def _code_points(texts: npt.NDArray[Any]) -> npt.NDArray[np.uint32]:
    return np.frombuffer(texts.tobytes(), np.uint32)


def _scalar(data: Bytes) -> Any:
    array = _array(data)
    if array.ndim:
        raise ProtocolError(f"a scalar has the shape {array.shape}")
    return array[()]


def _unsent(kind: Any, text: Any) -> Unsent:
    if type(kind) is not str or type(text) is not str:
        raise ProtocolError("the parts of an Unsent are not two strings")
    return Unsent(kind, text)


def _complex(real: Any, imaginary: Any) -> complex:
    if type(real) is not float or type(imaginary) is not float:
        raise ProtocolError("the parts of a complex number are not two floats")
    return complex(real, imaginary)


def _tuple(*parts: Any) -> tuple[Any, ...]:
    return parts


def _dict(*pairs: Any) -> dict[Any, Any]:
    if not _are_safe_keys([key for key, _ in pairs]):
        raise ProtocolError(
            "a dict has too many keys that are not strings, bytes or 64-bit integers"
        )
    return dict(pairs)


def _objects(shape: list[int], items: list[Any]) -> npt.NDArray[Any]:
    if any(type(size) is not int or size < 0 for size in shape):
        raise ProtocolError(f"an array of objects has the shape {shape}")
    array = np.empty(len(items), object)
    for position, item in enumerate(items):
        array[position] = item
    return array.reshape(shape)


def _text(item: Any) -> Any:
    if type(item) is str:
        return np.str_(item)
    if type(item) is bytes:
        return np.bytes_(item)
    raise ProtocolError(f"a string scalar has the type {type(item).__name__}")


_FROM_BYTES: dict[int, Callable[[Bytes], Any]] = {
    _Code.INTEGER: _integer,
    _Code.ARRAY: _array,
    _Code.SCALAR: _scalar,
}
_FROM_PARTS: dict[int, Callable[..., Any]] = {
    _Code.TUPLE: _tuple,
    _Code.DICT: _dict,
    _Code.GRAPH: GraphInstance,
    _Code.OBJECTS: _objects,
    _Code.TEXT: _text,
    _Code.UNSENT: _unsent,
    _Code.COMPLEX: _complex,
}
