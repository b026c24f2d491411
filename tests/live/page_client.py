"""A browser's part: reads what a page is told."""

import contextlib
import http.client
import json
import struct
import threading
import urllib.request


def fetched(url, data=None, headers=None):
    """The status and the body of an answer."""
    request = urllib.request.Request(url, data, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def pictures(url, query="after=0"):
    """The pictures after a version: (slot, version, width, height, bytes) for each."""
    status, body = fetched(f"{url}pictures?{query}")
    assert status == 200
    (count,), found, place = struct.unpack_from("<I", body), [], 4
    for _ in range(count):
        slot, version, width, height = struct.unpack_from("<IIHH", body, place)
        place += 12
        found.append((slot, version, width, height, body[place : place + 3 * width * height]))
        place += 3 * width * height
    assert place == len(body)
    return found


class Stream:
    """Collects the states that are told, in a thread, until the server hangs up."""

    def __init__(self, url):
        self.states = []
        self._news = threading.Condition()
        self._answer = urllib.request.urlopen(f"{url}events", timeout=20)
        self.kind = self._answer.headers["Content-Type"]
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        with contextlib.suppress(http.client.HTTPException):
            for line in self._answer:
                if line.startswith(b"data: "):
                    with self._news:
                        self.states.append(json.loads(line[6:]))
                        self._news.notify_all()

    def until(self, is_so, timeout=10):
        """The first state that is so."""
        with self._news:
            assert self._news.wait_for(lambda: any(map(is_so, self.states)), timeout)
            return next(filter(is_so, self.states))

    def log(self):
        """All entries that were told, in their order."""
        return [entry for state in self.states for entry in state["log"]]

    def end(self):
        """Wait until the server has hung up; returns the last state."""
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._answer.close()
        return self.states[-1]
