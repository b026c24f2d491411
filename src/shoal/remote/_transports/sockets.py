"""Sockets as transports: native, or, with TLS, in Python."""

from __future__ import annotations

import socket
import ssl

from shoal import _native
from shoal.pools._shares import available_cores
from shoal.remote._transports.base import STALL_TIMEOUT, Transport
from shoal.remote._transports.tls_transport import EncryptedTransport

__all__ = ["may_spin", "socket_transport", "tuned"]


def may_spin() -> bool:
    """Whether there is a core for the other end, if it is on this machine."""
    return available_cores() > 1


def socket_transport(connected: socket.socket, name: str) -> Transport:
    """A transport that owns this connected socket."""
    if isinstance(connected, ssl.SSLSocket):
        return EncryptedTransport(connected, name)
    connected.setblocking(False)
    return _native.Port.of_socket(connected.detach(), name, may_spin(), STALL_TIMEOUT)


def tuned(connected: socket.socket) -> socket.socket:
    """A TCP socket that sends at once, and notices the end of the other machine."""
    if connected.family in (socket.AF_INET, socket.AF_INET6):
        connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                connected.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connected
