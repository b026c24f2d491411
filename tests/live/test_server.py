"""The page is accessible only with its link, and closes with its vector."""

import gc
import http.client
import json
import socket
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import shoal
from shoal.live import show
from tests.live.page_client import Stream, fetch, fetch_frames


@pytest.fixture
def envs():
    with shoal.make("CartPole-v1", 8) as vector:
        vector.reset(seed=0)
        yield vector


@pytest.fixture
def page(envs):
    with show(envs, port=0, picture_share=1.0, refresh=0.3) as page:
        yield page


def step_for(seconds, envs):
    actions, end = envs.action_space.sample(), time.monotonic() + seconds
    while time.monotonic() < end:
        envs.step(actions)


def page_threads():
    return [thread.name for thread in threading.enumerate() if "page" in thread.name]


def open_descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_states_are_streamed_and_the_last_has_the_reason_for_the_end(envs, page):
    stream = Stream(page.url)
    first = stream.wait_for(lambda state: True)
    assert stream.content_type == "text/event-stream"
    assert (first["title"], first["kind"], first["num_envs"]) == ("CartPole-v1", "vector", 8)
    assert first["ended"] is None
    assert [entry["kind"] for entry in first["log"]] == ["start"]
    step_for(1.2, envs)
    later = stream.wait_for(lambda state: state["steps"] > 0)
    assert later["rate"]["now"] > 0
    assert later["returns"]["mean"] > 0
    assert 0 < later["cost"] < 1
    assert later["workers"][0]["slots"] == [0, 7]
    envs.close()
    last = stream.join()
    assert last["ended"] == "closed"
    assert last["steps"] >= later["steps"]
    assert [entry["n"] for entry in stream.log()] == [1, 2]  # each is sent once
    assert last["id"] == first["id"]


def test_frames_are_returned_after_the_first_request(envs, page):
    assert fetch_frames(page.url) == []
    step_for(0.7, envs)
    frames = fetch_frames(page.url)
    assert [slot for slot, *_ in frames] == list(range(8))
    for _, _, width, height, pixels in frames:
        assert (width, height, len(pixels)) == (200, 133, 200 * 133 * 3)
        assert len(set(pixels)) > 1
    newest = max(version for _, version, *_ in frames)
    assert fetch_frames(page.url, f"after={newest}") == []
    assert [slot for slot, *_ in fetch_frames(page.url, "after=0&only=5")] == [5]


def test_the_focused_slot_can_be_set(envs, page):
    def focus(body):
        return fetch(f"{page.url}focus", body)[0]

    assert focus(b'{"slot": 3}') == 204
    step_for(0.6, envs)
    assert page.watcher.state()["pictures"]["focus"] == 3
    assert focus(b'{"slot": null}') == 204
    assert page.watcher.frames.focus is None
    for wrong in (
        b'{"slot": 99}',
        b'{"slot": "3"}',
        b'{"slot": true}',
        b"[]",
        b"{}",
        b"3",
        b"\xff",
    ):
        assert focus(wrong) == 400
    assert focus(b" " * 2000) == 400
    assert page.watcher.frames.focus is None


def test_without_the_token_the_status_is_404(page):
    parts = urlsplit(page.url)
    base = f"http://{parts.netloc}/"
    for path in ("", "events", "pictures", "page.css", "wrong/", "wrong/events", "%00/", "a" * 999):
        status, body = fetch(base + path)
        assert (status, body) == (404, b"Not Found\n")
    assert fetch(base + "wrong/focus", b'{"slot": 1}')[0] == 404
    assert len(parts.path.strip("/")) >= 20


def test_requests_for_a_foreign_host_name_are_refused(page):
    for host, status in (
        ("evil.example", 404),
        ("evil.example:80", 404),
        ("localhost", 200),
        ("[::1]:9", 200),
        ("[", 404),
    ):
        assert fetch(f"{page.url}pictures", headers={"Host": host})[0] == status


def test_the_default_address_is_loopback(page):
    assert page.url.startswith("http://127.0.0.1:")


def test_responses_forbid_caching_framing_and_foreign_content(page):
    parts = urlsplit(page.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=5)
    for path in (f"{parts.path}pictures", "/"):
        connection.request("GET", path)
        response = connection.getresponse()
        response.read()
        assert response.headers["Cache-Control"] == "no-store"
        assert response.headers["Referrer-Policy"] == "no-referrer"
        assert "default-src 'self'" in response.headers["Content-Security-Policy"]
        assert response.headers["X-Content-Type-Options"] == "nosniff"
    connection.close()


def test_only_files_of_the_page_are_served(page):
    for path in ("../server.py", "..%2fserver.py", "/etc/passwd", "page", "index", "events/x"):
        assert fetch(page.url + path)[0] == 404
    for query in ("after=x", "after=-1", "only=x", "after=1&only=1.5"):
        assert fetch(f"{page.url}pictures?{query}")[0] == 400


@pytest.mark.parametrize(
    "message",
    [
        b"\r\n\r\n",
        b"GET\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"DELETE / HTTP/1.1\r\n\r\n",
    ],
)
def test_malformed_requests_do_no_harm(page, message, capfd):
    parts = urlsplit(page.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as raw:
        raw.sendall(message)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65_536):
            pass
    assert fetch(f"{page.url}pictures")[0] == 200
    assert capfd.readouterr().err == ""


def test_excess_connections_are_refused_and_earlier_ones_continue(page):
    parts = urlsplit(page.url)
    stream = Stream(page.url)
    idle = [socket.create_connection((parts.hostname, parts.port)) for _ in range(40)]
    refused = 0
    time.sleep(0.3)
    for connection in idle:
        connection.settimeout(0.01)
        try:
            refused += connection.recv(1) == b""
        except TimeoutError:
            continue
        except ConnectionError:
            refused += 1
    assert refused >= 8
    for connection in idle:
        connection.close()
    page.watcher.notify()
    before = len(stream.states)
    page.watcher.event_log.add("note", "still there")
    page.watcher.notify()
    stream.wait_for(lambda state: any(entry["text"] == "still there" for entry in state["log"]))
    assert len(stream.states) > before
    deadline = time.monotonic() + 5
    while fetch(f"{page.url}pictures")[0] != 200:
        assert time.monotonic() < deadline


def test_a_client_that_does_not_read_does_not_delay_closing(envs, page):
    parts = urlsplit(page.url)
    with socket.create_connection((parts.hostname, parts.port)) as client:
        client.sendall(f"GET {parts.path}events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        step_for(0.3, envs)
        start = time.monotonic()
        page.close()
        assert time.monotonic() - start < 3
    assert page_threads() == []


def test_the_page_closes_with_its_vector_or_separately(envs):
    page = show(envs, port=0)
    assert page_threads() != []
    page.close()
    page.close()
    assert page_threads() == []
    with pytest.raises(OSError, match="refused"):
        fetch(page.url)
    step_for(0.01, envs)
    again = show(envs, port=0)
    envs.close()
    assert page_threads() == []
    again.close()


def test_the_page_closes_when_its_vector_is_garbage_collected():
    envs = shoal.make("CartPole-v1", 2)
    page = show(envs, port=0)
    del envs
    gc.collect()
    assert page.watcher.state()["ended"] == "abandoned"
    assert page_threads() == []


def test_repeated_opening_and_closing_leaks_nothing():
    before = None
    for number in range(100):
        envs = shoal.make("CartPole-v1", 2)
        page = show(envs, port=0)
        if number % 20 == 0:
            stream = Stream(page.url)
            envs.close()
            stream.join()
        envs.close()
        if number == 20:
            gc.collect()
            before = open_descriptors(), threading.active_count()
    gc.collect()
    assert open_descriptors() <= before[0]
    assert threading.active_count() <= before[1]


def test_states_are_sent_at_the_refresh_interval(envs):
    with show(envs, port=0, refresh=0.1) as page:
        stream = Stream(page.url)
        step_for(1.0, envs)
        assert 3 <= len(stream.states) <= 12
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="refresh must be a positive number"):
            show(envs, port=0, refresh=wrong)


def test_ports_in_use(envs, page):
    port = urlsplit(page.url).port
    other = shoal.make("CartPole-v1", 1)
    with pytest.raises(OSError, match=f"port {port} on 127.0.0.1 is already in use"):
        show(other, port=port)
    pool = other.pool
    with show(other) as one, shoal.make("CartPole-v1", 1) as third, show(third) as two:
        assert urlsplit(one.url).port != urlsplit(two.url).port
    assert other.pool is pool
    other.close()


def test_states_are_valid_json(envs, page):
    watcher = page.watcher
    stream = Stream(page.url)
    watcher.wins = {"rate": 0.5, "history": []}
    watcher.notify()
    stream.wait_for(lambda state: state["wins"] is not None)
    json.dumps(watcher.state(), allow_nan=False)
