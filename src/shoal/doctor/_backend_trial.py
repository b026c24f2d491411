"""The child process that tries backends: ``python -m shoal.doctor._backend_trial``.

It is a process of its own, since what is broken may crash or hang. Its arguments are a descriptor,
for how many seconds each backend is timed, and the names of backends. To the descriptor it writes
a line of JSON when it begins with a backend, and another one of what came of it.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from hashlib import blake2b
from itertools import cycle
from typing import Any

import numpy as np

import shoal
from shoal import _native
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["ENVIRONMENT", "MAKERS", "NUM_ENVS", "main"]

ENVIRONMENT = "MountainCar-v0"
"""Of those with a kernel one that equals its Python class bit for bit on every machine."""

NUM_ENVS = 8

_BATCHES = 250
"""More than the 200 steps of an episode, so that every slot is reset on the way."""


@contextmanager
def _vector(**options: Any) -> Iterator[VectorEnv]:
    with closing(shoal.make(ENVIRONMENT, NUM_ENVS, **options)) as envs:
        yield envs


@contextmanager
def _remote() -> Iterator[VectorEnv]:
    with (
        shoal.serve({"cars": ENVIRONMENT}, "tcp://127.0.0.1:0") as server,
        closing(shoal.connect(f"{server.urls[0]}/cars", num_envs=NUM_ENVS)) as envs,
    ):
        yield envs


MAKERS: dict[str, Callable[[], AbstractContextManager[VectorEnv]]] = {
    "inline": lambda: _vector(backend="inline"),
    "kernel": lambda: _vector(backend="kernel"),
    "thread": lambda: _vector(backend="thread", workers=2),
    "process": lambda: _vector(backend="process", workers=2),
    "remote": _remote,
    "ray": lambda: _vector(backend="ray", workers=2),
}
"""What makes the same environments, by the name of the backend that steps them."""


def main(arguments: list[str]) -> None:
    """Try backends, one after the other, for as long as who has started this lives."""
    _native.start_lifeline(os.getppid(), dies_with_thread=False)
    descriptor, seconds, *names = arguments
    with open(int(descriptor), "w", buffering=1) as told:
        for name in names:
            print(json.dumps({"begun": name}), file=told)
            try:
                result = _tried(name, float(seconds))
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps({"name": name, **result}), file=told)


def _tried(name: str, seconds: float) -> dict[str, Any]:
    """What a backend does with the same seeds and actions, and how fast it is for a while."""
    with MAKERS[name]() as envs:
        actions = np.random.default_rng(0).integers(0, 3, (_BATCHES, NUM_ENVS))
        digests = [_digest(envs.reset(seed=42)[0])]
        digests += [_digest(*envs.step(each)[:4]) for each in actions]
        steps, again, begun = 0, cycle(actions), time.perf_counter()
        while (elapsed := time.perf_counter() - begun) < seconds or not steps:
            envs.step(next(again))
            steps += NUM_ENVS
        return {"digests": digests, "rate": steps / max(elapsed, 1e-9)}


def _digest(*arrays: Any) -> str:
    """Something short that differs where any bit, type or shape does."""
    digest = blake2b(digest_size=8)
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main(sys.argv[1:])
