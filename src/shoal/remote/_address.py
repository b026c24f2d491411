"""Server addresses: ``tcp://host:port``, ``tls://``, ``unix://path``, ``ws://``, ``inproc://name``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

__all__ = ["DEFAULT_PORT", "Address", "apply_tls"]

DEFAULT_PORT = 7711
_WITH_HOST = ("tcp", "tls", "ws", "wss")
_WITH_PATH = ("unix", "inproc")
_ENCRYPTED = {"tcp": "tls", "ws": "wss"}


@dataclass(frozen=True)
class Address:
    """An address to listen at or to connect to, and the name of a hosted vector.

    >>> Address.parse("tcp://rack-7:7711/Pick-v1")
    Address(scheme='tcp', host='rack-7', port=7711, path='', name='Pick-v1')
    >>> Address.parse("unix:///run/cell.sock#Pick-v1")
    Address(scheme='unix', host='', port=0, path='/run/cell.sock', name='Pick-v1')
    """

    scheme: str
    host: str
    port: int
    path: str
    name: str

    @classmethod
    def parse(cls, url: str) -> Address:
        """Parse a URL.

        The name follows the port: ``tcp://host:port/name``. For ``unix://path#name`` and
        ``inproc://path#name`` it follows a ``#``, because the path may contain slashes.

        Raises:
            ValueError: The URL has an unknown scheme, or no host or path.
        """
        parts = urlsplit(url)
        schemes = [f"{each}://" for each in (*_WITH_HOST, *_WITH_PATH)]
        if f"{parts.scheme}://" not in schemes:
            raise ValueError(f"{url!r} must start with one of {schemes}")
        if parts.scheme in _WITH_PATH:
            path = unquote(parts.netloc + parts.path)
            if not path:
                raise ValueError(f"{url!r} has no path: expected {parts.scheme}://path")
            return cls(parts.scheme, "", 0, path, unquote(parts.fragment))
        if not parts.hostname:
            raise ValueError(f"{url!r} has no host: expected {parts.scheme}://host:port/name")
        port = DEFAULT_PORT if parts.port is None else parts.port
        return cls(parts.scheme, parts.hostname, port, "", unquote(parts.path.lstrip("/")))

    @property
    def is_loopback(self) -> bool:
        """Whether the address can be reached from this machine only."""
        if self.scheme in _WITH_PATH or self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False  # a host name may resolve to any machine

    @property
    def is_encrypted(self) -> bool:
        """Whether the connection is encrypted."""
        return self.scheme in _ENCRYPTED.values()

    def __str__(self) -> str:
        if self.scheme in _WITH_PATH:
            return f"{self.scheme}://{self.path}" + (f"#{self.name}" if self.name else "")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}" + (f"/{self.name}" if self.name else "")


def apply_tls(addresses: Sequence[Address], tls: object) -> list[Address]:
    """Use the encrypted schemes if ``tls`` is given and no address is encrypted already.

    >>> apply_tls([Address.parse("tcp://rack-7:7711")], ("certificate.pem", "key.pem"))
    [Address(scheme='tls', host='rack-7', port=7711, path='', name='')]

    Raises:
        ValueError: ``tls`` is given, but no address supports encryption.
    """
    if tls is None or any(each.is_encrypted for each in addresses):
        return list(addresses)
    if not any(each.scheme in _ENCRYPTED for each in addresses):
        names = ", ".join(map(str, addresses))
        raise ValueError(f"tls is given, but {names} does not support encryption")
    return [replace(each, scheme=_ENCRYPTED.get(each.scheme, each.scheme)) for each in addresses]
