"""Transports over sockets: native, or in Python with TLS."""

from __future__ import annotations

import socket
import ssl

from shoal import _native
from shoal.pools._shares import available_cores
from shoal.remote._transports.base import STALL_TIMEOUT, Transport
from shoal.remote._transports.tls_transport import TlsTransport

__all__ = ["configure_tcp", "may_spin", "socket_transport"]


def may_spin() -> bool:
    """Whether a second core is available for the other end, if it is on this machine."""
    return available_cores() > 1


def socket_transport(connection: socket.socket, name: str) -> Transport:
    """Make a transport that takes ownership of a connected socket."""
    if isinstance(connection, ssl.SSLSocket):
        return TlsTransport(connection, name)
    connection.setblocking(False)
    return _native.Port.of_socket(connection.detach(), name, may_spin(), STALL_TIMEOUT)


def configure_tcp(connection: socket.socket) -> socket.socket:
    """Disable Nagle's algorithm and enable keep-alive if this is a TCP socket; return it."""
    if connection.family in (socket.AF_INET, socket.AF_INET6):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in (("TCP_KEEPIDLE", 15), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3)):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return connection
