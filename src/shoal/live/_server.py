"""The HTTP server of a page: files, states as server-sent events, and frames."""

from __future__ import annotations

import ipaddress
import json
import secrets
import socket
import struct
import sys
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from socketserver import TCPServer
from typing import Any
from urllib.parse import parse_qs

from shoal.live._frames import Frame
from shoal.live._watcher import Watcher

__all__ = ["PageServer"]

_CONTENT_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_MAX_CONNECTIONS = 32
_TIMEOUT = 10.0
"""Seconds that a browser may take to send a request, or to read a response."""

_HEARTBEAT = 2.0
_MAX_BODY = 1000


class PageServer:
    """Serves the page of a watcher, in background threads, until it is stopped.

    Args:
        watcher: The source of the data.
        host: The address to listen on.
        port: The port; 0 for any free port.

    Raises:
        OSError: The address or the port cannot be used.
    """

    def __init__(self, watcher: Watcher, host: str, port: int) -> None:
        self.token = secrets.token_urlsafe(16)
        self._server = _Server(watcher, host, port, self.token)
        self._thread = threading.Thread(target=self._server.serve, name="shoal page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The link to the page, which contains the token."""
        address, port = self._server.server_address[:2]
        host = str(address)
        if ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{port}/{self.token}/"

    def stop(self) -> None:
        """Send the last state and close all connections. Further calls have no effect."""
        self._server.stop()
        self._thread.join(_TIMEOUT)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, watcher: Watcher, host: str, port: int, token: str) -> None:
        self.watcher, self.token = watcher, token
        self.is_local = _is_loopback(host)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._connections: set[socket.socket] = set()
        self._condition = threading.Condition()
        self.stopping = threading.Event()
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Bind without looking up the name of this machine, which can take long."""
        TCPServer.server_bind(self)

    def serve(self) -> None:
        """Accept connections until ``stop`` is called."""
        with self:
            while not self.stopping.is_set():
                self.handle_request()  # blocks until there is a connection

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._condition:
            if self.stopping.is_set() or len(self._connections) >= _MAX_CONNECTIONS:
                self.shutdown_request(request)
                return
            self._connections.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        start = time.thread_time()
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.add_page_time(start)
            with self._condition:
                self._connections.discard(request)
                self._condition.notify_all()

    def add_page_time(self, start: float) -> float:
        """Add this thread's CPU time since ``start`` to the page's; return the current CPU time."""
        now = time.thread_time()
        with self._condition:
            self.watcher.page_seconds += now - start
        return now

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print errors, except those of connections that were closed or timed out."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        """Let event streams send the last state, then close all connections."""
        with self._condition:
            if self.stopping.is_set():
                return
            self.stopping.set()
        with suppress(OSError):  # a connection wakes the accepting thread, unless it has ended
            address, port = self.server_address[:2]
            socket.create_connection((str(address), port), timeout=1.0).close()
        self.watcher.notify()
        self._shut(socket.SHUT_RD)  # ends handlers that wait for a request
        with self._condition:
            self._condition.wait_for(lambda: not self._connections, timeout=0.5)
        self._shut(socket.SHUT_RDWR)
        with self._condition:
            self._condition.wait_for(lambda: not self._connections, timeout=_TIMEOUT)

    def _shut(self, how: int) -> None:
        with self._condition:
            connections = list(self._connections)
        for connection in connections:
            with suppress(OSError):  # it may be closed already
                connection.shutdown(how)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "Shoal"
    sys_version = ""
    timeout = _TIMEOUT
    disable_nagle_algorithm = True  # otherwise a body waits for the acknowledgement of its header

    def log_message(self, *_: Any) -> None:
        """Do not log requests."""

    def do_GET(self) -> None:
        """Respond with a file, the event stream or frames."""
        route = self._route()
        if route is None:
            return
        name, query = route
        if name == "events":
            self._send_events()
        elif name == "pictures":
            self._send_frames(query)
        else:
            self._send_file(name or "index.html")

    def do_POST(self) -> None:
        """Set the focused slot."""
        route = self._route()
        if route is None:
            return
        if route[0] != "focus":
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MAX_BODY:
            self.close_connection = True
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        frames = self.server.watcher.frames
        try:
            slot = json.loads(self.rfile.read(int(length)))["slot"]
        except (ValueError, TypeError, KeyError):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        if slot is not None and (type(slot) is not int or slot not in frames.tiles):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        frames.focus = slot
        self._send(HTTPStatus.NO_CONTENT, None, b"")

    def _route(self) -> tuple[str, dict[str, list[str]]] | None:
        """Return the path below the token and the query; None if access was refused."""
        path, _, query = self.path.partition("?")
        _, _, rest = path.partition("/")
        token, _, name = rest.partition("/")
        is_authorized = secrets.compare_digest(token.encode(), self.server.token.encode())
        # DNS rebinding: a foreign page whose name resolves to this machine sends its own host name.
        host = self.headers.get("Host", "")
        if not is_authorized or (self.server.is_local and not _is_loopback(_without_port(host))):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return name, parse_qs(query)

    def _send_file(self, name: str) -> None:
        content = _files().get(name)
        if content is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._send(HTTPStatus.OK, _CONTENT_TYPES[name.rpartition(".")[2]], content)

    def _send_frames(self, query: dict[str, list[str]]) -> None:
        after, only = query.get("after", ["0"])[-1], query.get("only", [None])[-1]
        if not after.isdecimal() or not (only is None or only.isdecimal()):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        store = self.server.watcher.frames
        frames = store.newer(int(after), None if only is None else int(only))
        self._send(HTTPStatus.OK, "application/octet-stream", _packed(frames))

    def _send_events(self) -> None:
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self._send_headers({"Content-Type": "text/event-stream", "Connection": "close"})
        self.end_headers()
        watcher, sent, version = self.server.watcher, 0, -1
        start = time.thread_time()
        while True:
            version = watcher.wait(version, _HEARTBEAT)
            is_last = self.server.stopping.is_set()
            state = watcher.state(sent)
            if state["log"]:
                sent = state["log"][-1]["n"]
            text = json.dumps(state, separators=(",", ":"), allow_nan=False, default=float)
            self.wfile.write(f"event: state\ndata: {text}\n\n".encode())
            start = self.server.add_page_time(start)
            if is_last:
                return
            self.server.stopping.wait(watcher.refresh)

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{status.phrase}\n".encode())

    def _send(self, status: HTTPStatus, content_type: str | None, body: bytes) -> None:
        self.send_response(status)
        if content_type is not None:
            self._send_headers({"Content-Type": content_type, "Content-Length": str(len(body))})
        self.end_headers()
        self.wfile.write(body)

    def _send_headers(self, headers: dict[str, str]) -> None:
        for name, value in (headers | _HEADERS).items():
            self.send_header(name, value)


@cache
def _files() -> dict[str, bytes]:
    folder = resources.files("shoal.live").joinpath("page")
    return {
        file.name: file.read_bytes()
        for file in folder.iterdir()
        if file.name.rpartition(".")[2] in _CONTENT_TYPES
    }


def _packed(frames: Iterable[Frame]) -> bytes:
    parts = [b""]
    for slot, version, pixels in frames:
        height, width = pixels.shape[:2]
        parts += struct.pack("<IIHH", slot, version, width, height), pixels.tobytes()
    parts[0] = struct.pack("<I", len(parts) // 2)
    return b"".join(parts)


def _without_port(host: str) -> str:
    """Return the host without the port.

    >>> _without_port("[::1]:80"), _without_port("localhost:80"), _without_port("127.0.0.1")
    ('::1', 'localhost', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
