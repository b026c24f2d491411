"""The page is for those who have its link, and is gone with its vector."""

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
from tests.live.page_client import Stream, fetched, pictures


@pytest.fixture
def envs():
    with shoal.make("CartPole-v1", 8) as made:
        made.reset(seed=0)
        yield made


@pytest.fixture
def page(envs):
    with show(envs, port=0, picture_share=1.0, refresh=0.3) as shown:
        yield shown


def steps(envs, seconds=0.7):
    """Step for so long."""
    actions, until = envs.action_space.sample(), time.monotonic() + seconds
    while time.monotonic() < until:
        envs.step(actions)


def threads():
    return [thread.name for thread in threading.enumerate() if "page" in thread.name]


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


def test_news_come_while_it_is_stepped_and_the_last_says_how_it_ended(envs, page):
    stream = Stream(page.url)
    first = stream.until(lambda state: True)
    assert stream.kind == "text/event-stream"
    assert (first["title"], first["kind"], first["num_envs"]) == ("CartPole-v1", "vector", 8)
    assert first["ended"] is None
    assert [entry["kind"] for entry in first["log"]] == ["start"]
    steps(envs, 1.2)
    later = stream.until(lambda state: state["steps"] > 0)
    assert later["rate"]["now"] > 0
    assert later["returns"]["mean"] > 0
    assert 0 < later["cost"] < 1
    assert later["workers"][0]["slots"] == [0, 7]
    envs.close()
    last = stream.end()
    assert last["ended"] == "closed"
    assert last["steps"] >= later["steps"]
    assert [entry["n"] for entry in stream.log()] == [1, 2]  # each is told once
    assert last["id"] == first["id"]


def test_pictures_come_for_who_asks(envs, page):
    assert pictures(page.url) == []
    steps(envs)
    found = pictures(page.url)
    assert [slot for slot, *_ in found] == list(range(8))
    for _, _, width, height, pixels in found:
        assert (width, height, len(pixels)) == (200, 133, 200 * 133 * 3)
        assert len(set(pixels)) > 1
    newest = max(version for _, version, *_ in found)
    assert pictures(page.url, f"after={newest}") == []
    assert [slot for slot, *_ in pictures(page.url, "after=0&only=5")] == [5]


def test_what_is_looked_at_is_said(envs, page):
    def focus(body):
        return fetched(f"{page.url}focus", body)[0]

    assert focus(b'{"slot": 3}') == 204
    steps(envs, 0.6)
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


def test_who_does_not_know_the_token_sees_nothing(page):
    parts = urlsplit(page.url)
    base = f"http://{parts.netloc}/"
    for path in ("", "events", "pictures", "page.css", "wrong/", "wrong/events", "%00/", "a" * 999):
        status, body = fetched(base + path)
        assert (status, body) == (404, b"Not Found\n")
    assert fetched(base + "wrong/focus", b'{"slot": 1}')[0] == 404
    assert len(parts.path.strip("/")) >= 20


def test_a_stranger_whose_name_leads_here_sees_nothing(page):
    for host, status in (
        ("evil.example", 404),
        ("evil.example:80", 404),
        ("localhost", 200),
        ("[::1]:9", 200),
        ("[", 404),
    ):
        assert fetched(f"{page.url}pictures", headers={"Host": host})[0] == status


def test_it_listens_to_this_machine_only(page):
    assert page.url.startswith("http://127.0.0.1:")


def test_answers_may_not_be_kept_framed_or_mixed(page):
    parts = urlsplit(page.url)
    connection = http.client.HTTPConnection(parts.netloc, timeout=5)
    for path in (f"{parts.path}pictures", "/"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        assert answer.headers["Cache-Control"] == "no-store"
        assert answer.headers["Referrer-Policy"] == "no-referrer"
        assert "default-src 'self'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    connection.close()


def test_only_the_pages_own_files_are_served(page):
    for path in ("../server.py", "..%2fserver.py", "/etc/passwd", "page", "index", "events/x"):
        assert fetched(page.url + path)[0] == 404
    for query in ("after=x", "after=-1", "only=x", "after=1&only=1.5"):
        assert fetched(f"{page.url}pictures?{query}")[0] == 400


@pytest.mark.parametrize(
    "words",
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
def test_nonsense_harms_nobody(page, words, capfd):
    parts = urlsplit(page.url)
    with socket.create_connection((parts.hostname, parts.port), timeout=5) as raw:
        raw.sendall(words)
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65_536):
            pass
    assert fetched(f"{page.url}pictures")[0] == 200
    assert capfd.readouterr().err == ""


def test_many_connections_are_refused_and_those_before_go_on(page):
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
    page.watcher.tell()
    before = len(stream.states)
    page.watcher.event_log.add("note", "still there")
    page.watcher.tell()
    stream.until(lambda state: any(entry["text"] == "still there" for entry in state["log"]))
    assert len(stream.states) > before
    deadline = time.monotonic() + 5
    while fetched(f"{page.url}pictures")[0] != 200:
        assert time.monotonic() < deadline


def test_who_does_not_read_holds_nobody_up(envs, page):
    parts = urlsplit(page.url)
    with socket.create_connection((parts.hostname, parts.port)) as deaf:
        deaf.sendall(f"GET {parts.path}events HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        steps(envs, 0.3)
        began = time.monotonic()
        page.close()
        assert time.monotonic() - began < 3
    assert threads() == []


def test_the_page_ends_with_its_vector_or_by_itself(envs):
    page = show(envs, port=0)
    assert threads() != []
    page.close()
    page.close()
    assert threads() == []
    with pytest.raises(OSError, match="refused"):
        fetched(page.url)
    steps(envs, 0.01)  # as if there had been none
    again = show(envs, port=0)
    envs.close()
    assert threads() == []
    again.close()


def test_a_vector_that_nobody_has_any_more_takes_its_page_with_it():
    envs = shoal.make("CartPole-v1", 2)
    page = show(envs, port=0)
    del envs
    gc.collect()
    assert page.watcher.state()["ended"] == "abandoned"
    assert threads() == []


def test_open_and_close_again_and_again():
    before = None
    for number in range(100):
        envs = shoal.make("CartPole-v1", 2)
        page = show(envs, port=0)
        if number % 20 == 0:
            stream = Stream(page.url)
            envs.close()
            stream.end()
        envs.close()
        if number == 20:
            gc.collect()
            before = descriptors(), threading.active_count()
    gc.collect()
    assert descriptors() <= before[0]
    assert threading.active_count() <= before[1]


def test_states_come_as_often_as_asked_for(envs):
    with show(envs, port=0, refresh=0.1) as page:
        stream = Stream(page.url)
        steps(envs, 1.0)
        assert 3 <= len(stream.states) <= 12
    for wrong in (0, -1.0, float("nan")):
        with pytest.raises(ValueError, match="refresh must be a positive number"):
            show(envs, port=0, refresh=wrong)


def test_ports(envs, page):
    port = urlsplit(page.url).port
    other = shoal.make("CartPole-v1", 1)
    with pytest.raises(OSError, match=f"port {port} of 127.0.0.1 is taken"):
        show(other, port=port)
    steps_before = other.pool
    with show(other) as one, shoal.make("CartPole-v1", 1) as third, show(third) as two:
        assert urlsplit(one.url).port != urlsplit(two.url).port
    assert other.pool is steps_before
    other.close()


def test_what_is_no_number_for_json_is_left_out(envs, page):
    watcher = page.watcher
    stream = Stream(page.url)
    watcher.wins = {"rate": 0.5, "history": []}
    watcher.tell()
    stream.until(lambda state: state["wins"] is not None)
    json.dumps(watcher.state(), allow_nan=False)
