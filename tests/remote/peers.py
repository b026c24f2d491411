"""Devices, raw clients and processes for tests."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from gymnasium import spaces

from shoal.remote import Feedback, Status
from shoal.remote._messages import (
    ClientHello,
    ClientReady,
    ServerHello,
    SessionInfo,
    pack_message,
    unpack_message,
)
from shoal.remote._wire import HEADER_BYTES, Header, Kind, pack_header, read_header

ROOT = Path(__file__).parents[2]

LONG = 20_000
"""Milliseconds: the action of a step that is longer than the test."""

SOON = LONG / 1000 / 2
"""Seconds: an operation that takes less did not wait for a long action."""


def wait_until(is_so, timeout=5.0):
    """Wait for a condition; return whether it became true in time."""
    deadline = time.monotonic() + timeout
    while not is_so():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True


def shoal_threads():
    """Return the names of Shoal's running threads."""
    return sorted(each.name for each in threading.enumerate() if each.name.startswith("shoal"))


class Cell:
    """A device whose actions are the milliseconds of a step; it records its calls.

    An observation is (slot, number of steps).
    """

    single_observation_space = spaces.Box(-1, 1e6, (2,), np.float64)
    single_action_space = spaces.Discrete(100_000)
    num_envs = 3

    def __init__(self, reset_seconds=0.0):
        self.reset_seconds = reset_seconds
        self.steps = {}
        self.executed = []  # (slots, actions) of each call
        self.running = threading.Event()
        self.is_closed = 0

    def _seen(self, slot):
        return np.array([slot, self.steps.get(slot, 0)], np.float64)

    def reset_slots(self, slots, seeds, options):
        time.sleep(self.reset_seconds)
        self.steps.update(dict.fromkeys(slots, 0))
        return [Feedback(self._seen(slot)) for slot in slots]

    def step_slots(self, slots, actions):
        self.running.set()
        time.sleep(max(int(action) for action in actions) / 1000)
        self.executed.append((list(slots), [int(action) for action in actions]))
        for slot in slots:
            self.steps[slot] = self.steps.get(slot, 0) + 1
        self.running.clear()
        return [Feedback(self._seen(slot), float(slot) + 0.5) for slot in slots]

    def total(self):
        return sum(self.steps.values())

    def close(self):
        self.is_closed += 1


class WakeableCell(Cell):
    """A cell whose running call completes as soon as it is woken."""

    def __init__(self, reset_seconds=0.0):
        super().__init__()
        self.woken = threading.Event()
        self.longest_reset = reset_seconds

    def reset_slots(self, slots, seeds, options):
        self.woken.wait(self.longest_reset)
        return super().reset_slots(slots, seeds, options)

    def step_slots(self, slots, actions):
        self.running.set()
        self.woken.wait(max(int(action) for action in actions) / 1000)
        return super().step_slots(slots, [0] * len(slots))


class ExpectingCell(Cell):
    """A cell that returns the expected duration of a step."""

    def expected_duration(self, slots, actions):
        return max(int(action) for action in actions) / 1000


class CancellableCell(Cell):
    """A cell whose running call can be cancelled."""

    def __init__(self):
        super().__init__()
        self.stopped = threading.Event()

    def step_slots(self, slots, actions):
        self.stopped.clear()
        self.running.set()
        if self.stopped.wait(max(int(action) for action in actions) / 1000):
            return [Feedback(self._seen(slot), status=Status.NOT_EXECUTED) for slot in slots]
        return super().step_slots(slots, [0] * len(slots))

    def cancel(self, slots):
        self.stopped.set()


class Raw:
    """A client that sends arbitrary messages."""

    def __init__(self, url, name="it", **hello):
        self.socket = socket.create_connection(
            ("127.0.0.1", int(url.partition("://")[2].partition("/")[0].rpartition(":")[2])), 5.0
        )
        self.number = 0
        self.server_hello = unpack_message(ServerHello, self.read()[1])
        self.info = None
        if name is not None:
            self.write(Kind.CLIENT_HELLO, pack_message(ClientHello(1, name, **hello)), number=0)
            header, meta = self.read()
            assert header.kind is Kind.SESSION_INFO, (header, bytes(meta))
            self.info = unpack_message(SessionInfo, meta)
            self.write(Kind.CLIENT_READY, pack_message(ClientReady(False)), number=0)

    def write(self, kind, meta=b"", body=b"", *, number=None, **rest):
        self.socket.sendall(self.message(kind, meta, body, number=number, **rest))

    def message(self, kind, meta=b"", body=b"", *, number=None, overrides=(), **rest):
        if number is None:
            self.number += 1
            number = self.number
        fields = {"flags": 0, "rows": 0, "meta": len(meta), "micros": 0, "number": number}
        fields |= {"ack": 0, "reply_to": 0, "body": len(body)} | rest | dict(overrides)
        return pack_header(Header(kind, **fields)) + meta + body

    def read(self):
        """Receive the next message; return its header and its meta part."""
        head = self._exactly(HEADER_BYTES)
        header = read_header(head)
        return header, self._exactly(header.meta + header.body)[: header.meta]

    def _exactly(self, size):
        received = bytearray()
        while len(received) < size:
            data = self.socket.recv(size - len(received))
            if not data:
                raise EOFError
            received += data
        return bytes(received)

    def last_response(self, number=None):
        """Return the last response to a request, by default the newest request."""
        rows = 0
        while True:
            header, meta = self.read()
            rows += header.rows
            is_reply = header.kind is Kind.SESSION_ENDED or header.reply_to == (
                number or self.number
            )
            if is_reply and (header.kind is not Kind.BATCH or rows >= self.info.num_envs):
                return header, meta

    def is_disconnected(self, timeout=5.0):
        """Whether the server closes the connection in time."""
        self.socket.settimeout(timeout)
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Process:
    """A script in another process, which prints "ready ..." when it is ready."""

    def __init__(self, script):
        paths = (str(ROOT), os.environ.get("PYTHONPATH"))
        self.popen = subprocess.Popen(
            [sys.executable, "-c", script],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        self.output = []
        for line in self.popen.stdout:
            if line.startswith("ready"):
                self.ready_args = line.split()[1:]
                return
            self.output.append(line)
        raise AssertionError("".join(self.output))

    def signal(self, number):
        os.kill(self.popen.pid, number)

    def stop(self):
        """Stop the process with SIGSTOP; returns when none of its threads runs any more."""
        self.signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.popen.pid, os.WSTOPPED)

    def remaining_output(self, timeout=20.0):
        """Return the remaining output until the process ends."""
        return self.popen.communicate(timeout=timeout)[0]

    def kill(self):
        with suppress(OSError):
            self.signal(signal.SIGCONT)
        self.popen.kill()
        self.popen.wait()
        self.popen.stdout.close()


@contextmanager
def process(script):
    running = Process(script)
    try:
        yield running
    finally:
        running.kill()


@contextmanager
def fake_server(*messages):
    """A server that sends these messages to one client, and records what it receives."""
    received = []
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        try:
            connected, _ = listener.accept()
        except OSError:
            return
        with connected:
            connected.settimeout(3.0)
            for message in messages:
                connected.sendall(message)
                try:
                    received.append(connected.recv(1 << 16))
                except OSError:
                    return

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"tcp://127.0.0.1:{listener.getsockname()[1]}/it", received
    finally:
        listener.close()
        thread.join(5.0)


def unnumbered_message(kind, message):
    meta = pack_message(message)
    return Raw.message(None, kind, meta, number=0)
