"""What users of remote vectors meet: slow slots among fast ones, and a network that takes time."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from statistics import median

import numpy as np

import shoal
from benchmarks.remote.null import NUM_SLOTS
from benchmarks.remote.serving import LOCALHOST, served
from benchmarks.remote.shoal_vectors import serve_slow_slots, serve_swinging

__all__ = ["milliseconds_beside_slow_slots", "worth_of_two_groups"]

_SLOW = 4


def milliseconds_beside_slow_slots(attempts: int) -> float:
    """How long ``recv`` of the other slots takes when four of them sleep for a second."""
    seconds = [1.0] * _SLOW + [0.0] * (NUM_SLOTS - _SLOW)
    taken = []
    with (
        served(serve_slow_slots, seconds) as url,
        shoal.connect(f"{url}/it", shared_memory=False) as envs,
    ):
        envs.reset()
        for _ in range(attempts):
            begun = time.perf_counter()
            envs.send(np.zeros(NUM_SLOTS, np.int64))
            batch = envs.recv(min_slots=NUM_SLOTS - _SLOW)
            taken.append(time.perf_counter() - begun)
            if batch.slots.min() < _SLOW:
                raise RuntimeError("a slow slot was fast")
            envs.recv()
    return median(taken) * 1e3


def worth_of_two_groups(rounds: int, steps: int, delay: float) -> float:
    """What it is worth to have two groups of slots in flight, next to one after the other.

    Args:
        rounds: How many are compared.
        steps: Of each group, in a round.
        delay: Seconds that the network takes, there and back.
    """
    groups = np.split(np.arange(NUM_SLOTS), 2)
    actions = np.zeros(NUM_SLOTS // 2, np.int64)
    ratios = []
    with (
        served(serve_swinging, NUM_SLOTS) as url,
        _delaying(url, delay / 2) as far,
        shoal.connect(f"{far}/it", shared_memory=False) as envs,
    ):
        envs.reset()
        for _ in range(rounds):
            begun = time.perf_counter()
            for _ in range(steps):
                for group in groups:
                    envs.send(actions, group)
                    envs.recv(slots=group)
            between = time.perf_counter()
            for group in groups:
                envs.send(actions, group)
            for step in range(steps):
                for group in groups:
                    envs.recv(slots=group)
                    if step < steps - 1:
                        envs.send(actions, group)
            ratios.append((between - begun) / (time.perf_counter() - between))
    return median(ratios)


@contextmanager
def _delaying(url: str, delay: float) -> Iterator[str]:
    """A place from which what is sent to a server arrives later, and the same back."""
    host, port = url.removeprefix("tcp://").split(":")
    with socket.create_server((LOCALHOST, 0)) as listener:
        threading.Thread(
            target=_pass_on, args=(listener, (host, int(port)), delay), daemon=True
        ).start()
        yield f"tcp://{LOCALHOST}:{listener.getsockname()[1]}"


def _pass_on(listener: socket.socket, address: tuple[str, int], delay: float) -> None:
    near, _ = listener.accept()
    far = socket.create_connection(address)
    for one, other in ((near, far), (far, near)):
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        held: SimpleQueue[tuple[float, bytes]] = SimpleQueue()
        threading.Thread(target=_take, args=(one, held, delay), daemon=True).start()
        threading.Thread(target=_give, args=(other, held), daemon=True).start()


def _take(source: socket.socket, held: SimpleQueue[tuple[float, bytes]], delay: float) -> None:
    while True:
        data = source.recv(1 << 16)
        held.put((time.perf_counter() + delay, data))
        if not data:
            return


def _give(target: socket.socket, held: SimpleQueue[tuple[float, bytes]]) -> None:
    while True:
        due, data = held.get()
        if not data:
            target.close()
            return
        time.sleep(max(0.0, due - time.perf_counter()))
        target.sendall(data)
