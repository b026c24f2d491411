"""The cost of a live page: both samplers step one vector, with and without its page."""

from __future__ import annotations

import json
import threading
import urllib.request
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from benchmarks import live
from benchmarks.live import samplers
from benchmarks.turns import Measuring


@pytest.fixture
def urls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that readers were started with."""
    urls = []
    reader = live._reader

    @contextmanager
    def noted(url: str) -> Any:
        urls.append(url)
        with reader(url):
            yield

    monkeypatch.setattr(live, "_reader", noted)
    return urls


def test_only_the_watched_sampler_steps_through_the_page(urls: list[str]) -> None:
    makers = samplers("live-cartpole-inline", 2, Measuring(seconds=0.01))
    watched: Any = makers["watched"]()
    unwatched: Any = makers["unwatched"]()
    shared = watched._shared
    assert unwatched._shared is shared
    pools = []
    step_many = shared._vector.step_many

    def noted(seconds: float) -> tuple[int, float]:
        pools.append(shared._envs.pool)
        steps, _ = step_many(seconds)
        return steps, steps / 1000

    shared._vector.step_many = noted
    assert [each.sample(0.02) for each in (watched, unwatched, watched)] == [
        pytest.approx(1000.0)
    ] * 3
    assert pools[0] is pools[2] is not pools[1]
    assert type(pools[0]).__name__ == "WatchedPool"
    assert type(pools[1]).__name__ == "InlinePool"
    watched.close()
    unwatched.close()
    [url] = urls
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(url)


def test_the_reader_requests_the_pictures_of_every_event() -> None:
    requested: list[str] = []
    is_read = threading.Event()

    class Page(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(200)
            if self.path == "/token/events":
                self.send_header("Connection", "close")
                self.end_headers()
                for version in (3, 5):
                    news = json.dumps({"pictures": {"version": version}})
                    self.wfile.write(f"data: {news}\n\n".encode())
                is_read.wait(20)
                return
            requested.append(self.path)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")
            if len(requested) == 2:
                is_read.set()

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        with live._reader(f"http://127.0.0.1:{server.server_port}/token/"):
            assert is_read.wait(20)
    finally:
        server.shutdown()
        server.server_close()
    assert requested == ["/token/pictures?after=0", "/token/pictures?after=3"]
