"""The page over HTTP: files, news as they come, and pictures. It knows nothing of vectors."""

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

_KINDS = {
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

_MOST_CONNECTIONS = 32
_PATIENCE = 10.0
"""Seconds that a browser may take to send a request, or to read what it has asked for."""

_HEARTBEAT = 2.0
_MOST_BODY = 1000


class PageServer:
    """Serves the page of a watcher, in threads of its own, until it is stopped.

    Args:
        watcher: What there is to tell.
        host: The address to listen at.
        port: The port; 0 for any.

    Raises:
        OSError: Nobody can listen there.
    """

    def __init__(self, watcher: Watcher, host: str, port: int) -> None:
        self.token = secrets.token_urlsafe(16)
        self._server = _Server(watcher, host, port, self.token)
        self._thread = threading.Thread(target=self._server.welcome, name="shoal page", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """The link to the page. Whoever has it may look."""
        address, port = self._server.server_address[:2]
        host = str(address)
        if ipaddress.ip_address(host).is_unspecified:
            host = socket.gethostname()
        name = f"[{host}]" if ":" in host else host
        return f"http://{name}:{port}/{self.token}/"

    def stop(self) -> None:
        """Tell the last news, and hang up; a second call does nothing."""
        self._server.hang_up()
        self._thread.join(_PATIENCE)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 16

    def __init__(self, watcher: Watcher, host: str, port: int, token: str) -> None:
        self.watcher, self.token = watcher, token
        self.is_local = _is_loopback(host)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._connections: set[socket.socket] = set()
        self._all_gone = threading.Condition()
        self.stopping = threading.Event()
        super().__init__((host, port), _Handler)

    def server_bind(self) -> None:
        """Without a look at how this machine is called, which can take long."""
        TCPServer.server_bind(self)

    def welcome(self) -> None:
        """Answer everybody, until it is hung up."""
        with self:
            while not self.stopping.is_set():
                self.handle_request()  # which waits for somebody

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._all_gone:
            if self.stopping.is_set() or len(self._connections) >= _MOST_CONNECTIONS:
                self.shutdown_request(request)
                return
            self._connections.add(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        began = time.thread_time()
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.note_time(began)
            with self._all_gone:
                self._connections.discard(request)
                self._all_gone.notify_all()

    def note_time(self, began: float) -> float:
        """Add what this thread has taken of the processor since then; returns what it is at now."""
        now = time.thread_time()
        with self._all_gone:
            self.watcher.page_seconds += now - began
        return now

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Tell of what is wrong here; that a browser is gone, or too slow, is not."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    def hang_up(self) -> None:
        """Let streams tell the last news; what has not ended then is cut off."""
        with self._all_gone:
            if self.stopping.is_set():
                return
            self.stopping.set()
        with suppress(OSError):  # wakes who waits for somebody; or has the end been seen already?
            address, port = self.server_address[:2]
            socket.create_connection((str(address), port), timeout=1.0).close()
        self.watcher.tell()
        self._shut(socket.SHUT_RD)  # who waits for a request, waits no more
        with self._all_gone:
            self._all_gone.wait_for(lambda: not self._connections, timeout=0.5)
        self._shut(socket.SHUT_RDWR)
        with self._all_gone:
            self._all_gone.wait_for(lambda: not self._connections, timeout=_PATIENCE)

    def _shut(self, how: int) -> None:
        with self._all_gone:
            left = list(self._connections)
        for connection in left:
            with suppress(OSError):  # it may have gone by itself
                connection.shutdown(how)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    server_version = "Shoal"
    sys_version = ""
    timeout = _PATIENCE
    disable_nagle_algorithm = True  # or a body waits until its head has been acknowledged

    def log_message(self, *_: Any) -> None:
        """Requests are not worth a line."""

    def do_GET(self) -> None:
        """Answer with a file, the news or pictures."""
        place = self._place()
        if place is None:
            return
        name, query = place
        if name == "events":
            self._tell_events()
        elif name == "pictures":
            self._send_pictures(query)
        else:
            self._send_file(name or "index.html")

    def do_POST(self) -> None:
        """Let the page say which slot it looks at."""
        place = self._place()
        if place is None:
            return
        if place[0] != "focus":
            self._refuse(HTTPStatus.NOT_FOUND)
            return
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal() or int(length) > _MOST_BODY:
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

    def _place(self) -> tuple[str, dict[str, list[str]]] | None:
        """What is asked for, below the token; None for a stranger, who has been answered."""
        path, _, query = self.path.partition("?")
        _, _, rest = path.partition("/")
        token, _, name = rest.partition("/")
        knows = secrets.compare_digest(token.encode(), self.server.token.encode())
        # A page of somebody else's that has had its name resolved to this machine says that name.
        host = self.headers.get("Host", "")
        if not knows or (self.server.is_local and not _is_loopback(_without_port(host))):
            self._refuse(HTTPStatus.NOT_FOUND)
            return None
        return name, parse_qs(query)

    def _send_file(self, name: str) -> None:
        content = _files().get(name)
        if content is None:
            self._refuse(HTTPStatus.NOT_FOUND)
        else:
            self._send(HTTPStatus.OK, _KINDS[name.rpartition(".")[2]], content)

    def _send_pictures(self, query: dict[str, list[str]]) -> None:
        after, only = query.get("after", ["0"])[-1], query.get("only", [None])[-1]
        if not after.isdecimal() or not (only is None or only.isdecimal()):
            self._refuse(HTTPStatus.BAD_REQUEST)
            return
        frames = self.server.watcher.frames
        pictures = frames.newer(int(after), None if only is None else int(only))
        self._send(HTTPStatus.OK, "application/octet-stream", _packed(pictures))

    def _tell_events(self) -> None:
        self.close_connection = True
        self.send_response(HTTPStatus.OK)
        self._send_headers({"Content-Type": "text/event-stream", "Connection": "close"})
        self.end_headers()
        watcher, told, number = self.server.watcher, 0, -1
        began = time.thread_time()
        while True:
            number = watcher.wait(number, _HEARTBEAT)
            is_last = self.server.stopping.is_set()
            state = watcher.state(told)
            if state["log"]:
                told = state["log"][-1]["n"]
            text = json.dumps(state, separators=(",", ":"), allow_nan=False, default=float)
            self.wfile.write(f"event: state\ndata: {text}\n\n".encode())
            began = self.server.note_time(began)
            if is_last:
                return
            self.server.stopping.wait(watcher.refresh)

    def _refuse(self, status: HTTPStatus) -> None:
        self._send(status, "text/plain; charset=utf-8", f"{status.phrase}\n".encode())

    def _send(self, status: HTTPStatus, kind: str | None, body: bytes) -> None:
        self.send_response(status)
        if kind is not None:
            self._send_headers({"Content-Type": kind, "Content-Length": str(len(body))})
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
        if file.name.rpartition(".")[2] in _KINDS
    }


def _packed(pictures: Iterable[Frame]) -> bytes:
    parts = [b""]
    for slot, version, pixels in pictures:
        height, width = pixels.shape[:2]
        parts += struct.pack("<IIHH", slot, version, width, height), pixels.tobytes()
    parts[0] = struct.pack("<I", len(parts) // 2)
    return b"".join(parts)


def _without_port(host: str) -> str:
    """The name or address alone.

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
