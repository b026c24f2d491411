"""A client of the live page, in place of a browser."""

import contextlib
import http.client
import json
import struct
import threading
import urllib.request


def fetch(url, data=None, headers=None):
    """Return the status and the body of a response."""
    request = urllib.request.Request(url, data, headers or {})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def fetch_frames(url, query="after=0"):
    """Return the frames after a version, each as (slot, version, width, height, bytes)."""
    status, body = fetch(f"{url}pictures?{query}")
    assert status == 200
    (count,), frames, offset = struct.unpack_from("<I", body), [], 4
    for _ in range(count):
        slot, version, width, height = struct.unpack_from("<IIHH", body, offset)
        offset += 12
        frames.append((slot, version, width, height, body[offset : offset + 3 * width * height]))
        offset += 3 * width * height
    assert offset == len(body)
    return frames


class Stream:
    """Collects the states from the event stream, in a thread, until the server closes it."""

    def __init__(self, url):
        self.states = []
        self._changed = threading.Condition()
        self._response = urllib.request.urlopen(f"{url}events", timeout=20)
        self.content_type = self._response.headers["Content-Type"]
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        with contextlib.suppress(http.client.HTTPException):
            for line in self._response:
                if line.startswith(b"data: "):
                    with self._changed:
                        self.states.append(json.loads(line[6:]))
                        self._changed.notify_all()

    def wait_for(self, condition, timeout=10):
        """Wait for a state that meets the condition, and return the first one."""
        with self._changed:
            assert self._changed.wait_for(lambda: any(map(condition, self.states)), timeout)
            return next(filter(condition, self.states))

    def log(self):
        """Return all log entries in order."""
        return [entry for state in self.states for entry in state["log"]]

    def join(self):
        """Wait until the server closes the stream; return the last state."""
        self._thread.join(10)
        assert not self._thread.is_alive()
        self._response.close()
        return self.states[-1]
