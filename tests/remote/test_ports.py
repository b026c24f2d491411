"""Native ports over rings in shared memory."""

import os
import socket
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from shoal.remote._transports.shared_memory import make_memory, switch_to_shared_memory
from shoal.remote._transports.sockets import socket_transport

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="shared memory is Linux's")


@contextmanager
def two_ends(capacity: int):
    """Two ports connected by rings of this capacity."""
    ends = [socket_transport(each, "the other end") for each in socket.socketpair()]
    descriptor, memory = make_memory(capacity)
    os.close(descriptor)
    for number, end in enumerate(ends):
        switch_to_shared_memory(end, memory, capacity, number)
    try:
        yield ends
    finally:
        for end in ends:
            end.close()


class BackgroundCall(threading.Thread):
    """A thread whose exception is raised by ``finish``."""

    def __init__(self, work, *args):
        super().__init__()
        self._work, self._args = work, args
        self._error = None
        self.start()

    def run(self):
        try:
            self._work(*self._args)
        except BaseException as error:
            self._error = error

    def finish(self):
        self.join(20.0)
        assert not self.is_alive()
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize("capacity", [1000, 4096, 1 << 19])
def test_messages_larger_than_the_ring(capacity):
    random = np.random.default_rng(capacity)
    messages = [
        random.integers(0, 256, size, np.uint8) for size in random.integers(1, 6 * capacity, 100)
    ]

    def send_back(far):
        for message in messages:
            room = np.empty_like(message)
            far.receive_into([room])
            far.send([room])

    with two_ends(capacity) as (near, far):
        other = BackgroundCall(send_back, far)
        for message in messages:
            near.send([message])
            room = np.empty_like(message)
            assert near.peek(1, 10.0) == message[:1].tobytes()
            near.receive_into([room])
            np.testing.assert_array_equal(room, message)
        other.finish()


def test_ring_with_suspended_threads():
    # With more threads than cores, a reader is often suspended right after it has freed room, and
    # the writer has already filled that room when the reader continues.
    until = time.monotonic() + 2.0
    message = np.arange(1 << 21, dtype=np.uint8)

    def send(near):
        while time.monotonic() < until:
            near.send([message])
        near.send([np.zeros_like(message)])  # the last message

    def receive(far):
        room = np.empty_like(message)
        while True:
            far.receive_into([room])
            if room[-1] == 0:
                return
            assert room[-1] == 255

    def both():
        with two_ends(1024) as (near, far):
            sender = BackgroundCall(send, near)
            receive(far)
            sender.finish()

    pairs = [BackgroundCall(both) for _ in range(3)]
    for pair in pairs:
        pair.finish()
