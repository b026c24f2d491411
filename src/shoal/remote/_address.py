"""Where a server is: ``tcp://host:port``, ``tls://``, ``unix://path``, ``ws://``, ``inproc://name``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

__all__ = ["DEFAULT_PORT", "Address", "encrypted_if_asked"]

DEFAULT_PORT = 7711
_WITH_HOST = ("tcp", "tls", "ws", "wss")
_WITH_PATH = ("unix", "inproc")
_ENCRYPTED = {"tcp": "tls", "ws": "wss"}


@dataclass(frozen=True)
class Address:
    """A place to listen at or to connect to, and the name of what is asked for there.

    >>> Address.of("tcp://rack-7:7711/Pick-v1")
    Address(scheme='tcp', host='rack-7', port=7711, path='', name='Pick-v1')
    >>> Address.of("unix:///run/cell.sock#Pick-v1")
    Address(scheme='unix', host='', port=0, path='/run/cell.sock', name='Pick-v1')
    """

    scheme: str
    host: str
    port: int
    path: str
    name: str

    @classmethod
    def of(cls, url: str) -> Address:
        """Read a URL.

        The name follows the port: ``tcp://host:port/name``. A Unix socket's path is all that
        follows ``unix://``, so there the name follows a ``#``.
        """
        parts = urlsplit(url)
        known = (*_WITH_HOST, *_WITH_PATH)
        if parts.scheme not in known:
            raise ValueError(f"{url!r} must begin with one of {[f'{each}://' for each in known]}")
        if parts.scheme in _WITH_PATH:
            path = unquote(parts.netloc + parts.path)
            if not path:
                raise ValueError(f"{url!r} names no place: {parts.scheme}://... must go on")
            return cls(parts.scheme, "", 0, path, unquote(parts.fragment))
        if not parts.hostname:
            raise ValueError(f"{url!r} names no host: {parts.scheme}://host:port/name")
        port = DEFAULT_PORT if parts.port is None else parts.port
        return cls(parts.scheme, parts.hostname, port, "", unquote(parts.path.lstrip("/")))

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.scheme in _WITH_PATH or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False  # a name may mean any machine

    @property
    def is_encrypted(self) -> bool:
        """Whether what is said there is for nobody else."""
        return self.scheme in _ENCRYPTED.values()

    def __str__(self) -> str:
        if self.scheme in _WITH_PATH:
            return f"{self.scheme}://{self.path}" + (f"#{self.name}" if self.name else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}" + (f"/{self.name}" if self.name else "")


def encrypted_if_asked(places: Sequence[Address], tls: object) -> list[Address]:
    """These places, encrypted if there is something to encrypt with and none of them is yet.

    >>> encrypted_if_asked([Address.of("tcp://rack-7:7711")], ("certificate.pem", "key.pem"))
    [Address(scheme='tls', host='rack-7', port=7711, path='', name='')]

    Raises:
        ValueError: None of them can be.
    """
    if tls is None or any(place.is_encrypted for place in places):
        return list(places)
    if not any(place.scheme in _ENCRYPTED for place in places):
        names = ", ".join(map(str, places))
        raise ValueError(f"tls was given, but what goes to {names} is not encrypted")
    return [replace(place, scheme=_ENCRYPTED.get(place.scheme, place.scheme)) for place in places]
