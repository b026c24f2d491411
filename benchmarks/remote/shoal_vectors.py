"""Shoal's remote vectors of null environments, and servers of other environments."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, TypeAlias

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

import shoal
from benchmarks.remote.null import NUM_SLOTS, Actions, Outcome
from benchmarks.remote.serving import LOCALHOST, Announce, Client
from shoal._spaces import VectorSpaces
from shoal.pools import Batch

__all__ = ["Observation", "ShoalVector", "Transport", "serve_cartpoles", "serve_sleepers"]

Transport: TypeAlias = Literal["tcp", "unix", "shared memory"]
Observation: TypeAlias = Literal["numbers", "images"]

_SPACES: dict[str, spaces.Box] = {
    "numbers": spaces.Box(-1, 1, (4,), np.float32),
    "images": spaces.Box(0, 255, (4, 84, 84), np.uint8),
}


class _NullPool:
    """A pool whose slots do nothing, like those of the baselines."""

    envs = None
    copy = True
    restarts = False
    autoreset_mode = AutoresetMode.NEXT_STEP
    render_mode = None

    def __init__(self, observation: Observation) -> None:
        self.num_envs = NUM_SLOTS
        self.in_flight = 0
        self.metadata: dict[str, Any] = {}
        space, action = _SPACES[observation], spaces.Discrete(2)
        self.spaces = VectorSpaces(
            space,
            batch_space(space, NUM_SLOTS),
            action,
            batch_space(action, NUM_SLOTS),
        )
        flags = np.zeros(NUM_SLOTS, np.bool_)
        observations = np.zeros(self.spaces.observation.shape or (), space.dtype)
        self._results = observations, np.zeros(NUM_SLOTS), flags, flags.copy(), None

    def reset(self, *_: Any) -> None:
        self.in_flight = NUM_SLOTS

    def recv(self, *_: Any, **__: Any) -> Batch:
        self.in_flight = 0
        return Batch(np.arange(NUM_SLOTS), *self._results)

    def step(self, _: Any) -> Any:
        return self._results

    def send(self, *_: Any) -> None:
        self.in_flight = NUM_SLOTS

    def latest(self, _: Any = None) -> Any:
        return self._results[0]

    def call(self, *_: Any, **__: Any) -> list[Any]:
        return []

    def close(self) -> None:
        """Do nothing: there are no environments."""


def _serve(announce: Announce, transport: Transport, observation: Observation) -> None:
    address = "unix://@" + f"shoal-benchmark-{time.monotonic_ns()}"
    bind = address if transport == "unix" else f"tcp://{LOCALHOST}:0"
    server = shoal.serve({"null": partial(_NullPool, observation)}, bind)
    announce(server.url)
    server.wait()


def _connect(transport: Transport, url: str) -> Any:
    separator = "#" if transport == "unix" else "/"
    return shoal.connect(f"{url}{separator}null", shared_memory=transport == "shared memory")


class ShoalVector(Client[Any]):
    """A remote vector of null environments.

    Args:
        transport: How bytes travel.
        observation: What the slots observe.
    """

    def __init__(self, transport: Transport, observation: Observation = "numbers") -> None:
        super().__init__(partial(_connect, transport), _serve, transport, observation)
        self._connection.reset()

    def step(self, actions: Actions, /) -> Outcome:
        """Step all slots."""
        return Outcome(*self._connection.step(actions)[:4])


def serve_cartpoles(announce: Announce, num_envs: int) -> None:
    """Host CartPole-v1."""
    server = shoal.serve(
        {"it": lambda: shoal.make("CartPole-v1", num_envs)}, f"tcp://{LOCALHOST}:0"
    )
    announce(server.url)
    server.wait()


class _Sleeper(gymnasium.Env[Any, Any]):
    """Sleeps in every step."""

    observation_space = spaces.Box(-1, 1, (4,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def reset(self, **_: Any) -> Any:
        return np.zeros(4, np.float32), {}

    def step(self, _: Any) -> Any:
        time.sleep(self._seconds)
        return np.zeros(4, np.float32), 0.0, False, False, {}


def serve_sleepers(announce: Announce, seconds: Sequence[float]) -> None:
    """Host slots that sleep for these durations in every step."""
    factories = [partial(_Sleeper, each) for each in seconds]
    server = shoal.serve(
        {"it": lambda: shoal.make(factories, backend="process", caller_works=False)},
        f"tcp://{LOCALHOST}:0",
    )
    announce(server.url)
    server.wait()
