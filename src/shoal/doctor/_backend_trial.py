"""The child process that checks backends: ``python -m shoal.doctor._backend_trial``.

A separate process is used because a broken backend may crash or hang. The arguments are a file
descriptor, the number of seconds for which each backend is measured, and the names of backends.
For each backend it writes two lines of JSON to the descriptor: one before it starts, one with the
result.
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
"""An environment whose kernel equals its Python class bit for bit on every machine."""

NUM_ENVS = 8

_BATCHES = 250
"""More than the 200 steps of an episode, so that every slot is reset at least once."""


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
"""Functions that create the same vector, by the name of the backend."""


def main(arguments: list[str]) -> None:
    """Check backends one after the other. Exit with the parent process."""
    _native.start_lifeline(os.getppid(), dies_with_thread=False)
    descriptor, seconds, *names = arguments
    with open(int(descriptor), "w", buffering=1) as results:
        for name in names:
            print(json.dumps({"started": name}), file=results)
            try:
                result = _check(name, float(seconds))
            except Exception as error:
                result = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps({"name": name, **result}), file=results)


def _check(name: str, seconds: float) -> dict[str, Any]:
    """Step a backend with fixed seeds and actions; return digests of the results and the speed."""
    with MAKERS[name]() as envs:
        actions = np.random.default_rng(0).integers(0, 3, (_BATCHES, NUM_ENVS))
        digests = [_digest(envs.reset(seed=42)[0])]
        digests += [_digest(*envs.step(each)[:4]) for each in actions]
        steps, repeated, start = 0, cycle(actions), time.perf_counter()
        while (elapsed := time.perf_counter() - start) < seconds or not steps:
            envs.step(next(repeated))
            steps += NUM_ENVS
        return {"digests": digests, "rate": steps / max(elapsed, 1e-9)}


def _digest(*arrays: Any) -> str:
    """Return a short digest of the arrays' bits, dtypes and shapes."""
    digest = blake2b(digest_size=8)
    for array in arrays:
        digest.update(f"{array.dtype} {array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


if __name__ == "__main__":
    main(sys.argv[1:])
