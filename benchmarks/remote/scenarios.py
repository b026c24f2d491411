"""Situations of remote vectors: slow slots among fast ones, and a network with latency."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from queue import SimpleQueue

import numpy as np

import shoal
from benchmarks.remote.null import NUM_SLOTS
from benchmarks.remote.serving import LOCALHOST, served
from benchmarks.remote.shoal_vectors import serve_cartpoles, serve_sleepers
from benchmarks.turns import Sampler

__all__ = ["Groups", "RecvBesideSlow"]


class _Connected(Sampler):
    _resources: ExitStack

    def close(self) -> None:
        """Disconnect and end the server."""
        self._resources.close()


class RecvBesideSlow(_Connected):
    """The milliseconds in which ``recv`` returns the fast slots while others are slow.

    Args:
        slow: The number of slow slots, which come first.
        seconds: How long a step of a slow slot takes.
    """

    def __init__(self, slow: int = 4, seconds: float = 1.0) -> None:
        self._slow = slow
        durations = [seconds] * slow + [0.0] * (NUM_SLOTS - slow)
        with ExitStack() as resources:
            url = resources.enter_context(served(serve_sleepers, durations))
            connected = shoal.connect(f"{url}/it", shared_memory=False)
            self._envs = resources.enter_context(connected)
            self._envs.reset()
            self._resources = resources.pop_all()

    def sample(self, seconds: float) -> float:  # noqa: ARG002
        """Send to all slots, receive the fast ones, then wait for the slow ones.

        Raises:
            RuntimeError: A slow slot was among the first that were received.
        """
        start = time.perf_counter()
        self._envs.send(np.zeros(NUM_SLOTS, np.int64))
        batch = self._envs.recv(min_slots=NUM_SLOTS - self._slow)
        elapsed = time.perf_counter() - start
        if batch.slots.min() < self._slow:
            raise RuntimeError("recv returned a slow slot; expected the fast ones only")
        self._envs.recv()
        return elapsed * 1e3


class Groups(_Connected):
    """The steps per second of two groups of slots over a network with latency.

    Args:
        in_flight: How many of the two groups are in flight at the same time.
        steps: The steps of each group in a round.
        round_trip: The seconds that the network adds to a request and its answer.
    """

    def __init__(self, in_flight: int, steps: int = 20, round_trip: float = 0.01) -> None:
        self._in_flight = in_flight
        self._steps = steps
        with ExitStack() as resources:
            url = resources.enter_context(served(serve_cartpoles, NUM_SLOTS))
            far = resources.enter_context(_delayed(url, round_trip / 2))
            connected = shoal.connect(f"{far}/it", shared_memory=False)
            self._envs = resources.enter_context(connected)
            self._envs.reset()
            self._resources = resources.pop_all()

    def sample(self, seconds: float) -> float:  # noqa: ARG002
        """Step both groups."""
        groups = np.split(np.arange(NUM_SLOTS), 2)
        actions = np.zeros(NUM_SLOTS // 2, np.int64)
        turns = [group for _ in range(self._steps) for group in groups]
        ahead = self._in_flight
        start = time.perf_counter()
        for group in turns[:ahead]:
            self._envs.send(actions, group)
        for turn, group in enumerate(turns):
            self._envs.recv(slots=group)
            if turn + ahead < len(turns):
                self._envs.send(actions, turns[turn + ahead])
        return len(turns) * len(actions) / (time.perf_counter() - start)


@contextmanager
def _delayed(url: str, delay: float) -> Iterator[str]:
    """Forward a server's address; bytes are delayed by this time in both directions."""
    host, port = url.removeprefix("tcp://").split(":")
    with socket.create_server((LOCALHOST, 0)) as listener:
        threading.Thread(
            target=_forward, args=(listener, (host, int(port)), delay), daemon=True
        ).start()
        yield f"tcp://{LOCALHOST}:{listener.getsockname()[1]}"


def _forward(listener: socket.socket, address: tuple[str, int], delay: float) -> None:
    near, _ = listener.accept()
    far = socket.create_connection(address)
    for one, other in ((near, far), (far, near)):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        queue: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        threading.Thread(target=_read, args=(one, queue, delay), daemon=True).start()
        threading.Thread(target=_write, args=(other, queue), daemon=True).start()


def _read(source: socket.socket, queue: SimpleQueue[tuple[float, bytes]], delay: float) -> None:
    while True:
        try:
            data = source.recv(1 << 16)
        except OSError:
            data = b""
        queue.put((time.perf_counter() + delay, data))
        if not data:
            return


def _write(target: socket.socket, queue: SimpleQueue[tuple[float, bytes]]) -> None:
    while True:
        due, data = queue.get()
        if not data:
            target.close()
            return
        time.sleep(max(0.0, due - time.perf_counter()))
        target.sendall(data)
