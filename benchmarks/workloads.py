"""The environments that contenders step, by name.

The processes of all contenders import this module, some of them without Shoal's dependencies: it
may import only Gymnasium (0.29 or later) and NumPy, and no contender.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import cache, partial
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, Space, Tuple

from shoal._bench.workload import Environment, Workload

__all__ = [
    "ATARI_ACTIONS",
    "ATARI_RESETS",
    "BURN_RATE_VARIABLE",
    "GYMNASIUM_IDS",
    "STANDARD",
    "WORKLOADS",
    "burn_rate",
]

BURN_RATE_VARIABLE = "SHOAL_BENCHMARKS_BURN_RATE"


class Still(gymnasium.Env[Any, Any]):
    """Returns the same observation in every step of an episode that never ends."""

    def __init__(self, observation_space: Space[Any]) -> None:
        self.observation_space = observation_space
        self.action_space = Discrete(2)
        observation_space.seed(0)
        self._observation = observation_space.sample()

    def reset(
        self,
        *,
        seed: int | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[Any, dict[str, Any]]:
        """Start the episode."""
        super().reset(seed=seed, options=options)
        return self._observation, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002
        """Return the same observation."""
        return self._observation, 0.0, False, False, {}


class Informative(Still):
    """Returns the same observation, with eight numbers in every info."""

    _INFO: ClassVar = {f"measure_{number}": number / 8 for number in range(8)}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:  # noqa: ARG002
        """Return the same observation with infos."""
        return self._observation, 0.0, False, False, self._INFO.copy()


class Burning(Still):
    """Computes in pure Python for 0.5 to 1.5 times ``microseconds`` per step.

    The environment's random generator draws the duration of each step.
    """

    def __init__(self, microseconds: float) -> None:
        super().__init__(_vector_space())
        iterations = microseconds * burn_rate()
        self._fewest, self._most = int(iterations / 2), int(iterations * 1.5)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Compute, then return the same observation."""
        _burn(int(self.np_random.integers(self._fewest, self._most + 1)))
        return super().step(action)


@cache
def burn_rate() -> float:
    """Return how many iterations of the busy loop this machine does in a microsecond.

    It is measured once per process, unless the environment variable ``BURN_RATE_VARIABLE`` has it:
    the runner sets it for the processes of all contenders, so that all do the same work.
    """
    known = os.environ.get(BURN_RATE_VARIABLE)
    return float(known) if known else _measured_burn_rate()


def _measured_burn_rate(iterations: int = 50_000, attempts: int = 20) -> float:
    fastest = float("inf")
    for _ in range(attempts):
        start = time.perf_counter()
        _burn(iterations)
        fastest = min(fastest, time.perf_counter() - start)
    return iterations / (fastest * 1e6)


def _burn(iterations: int) -> int:
    state = 1
    for _ in range(iterations):
        state = (state * 1_664_525 + 1_013_904_223) & 0xFFFFFFFF
    return state


def _real(*shape: int, dtype: type[np.floating[Any]] = np.float32) -> Box:
    return Box(-1.0, 1.0, shape, dtype)


def _vector_space() -> Box:
    return _real(4)


def _image_space() -> Box:
    return Box(0, 255, (84, 84, 4), np.uint8)


def _robot_space() -> Dict:
    """Return a nested space of 19 leaves with seven dtypes, up to three levels deep."""
    camera = Dict({"rgb": Box(0, 255, (16, 16, 3), np.uint8), "depth": _real(16, 16)})
    joints = Dict(
        {
            "position": _real(12, dtype=np.float64),
            "velocity": _real(12, dtype=np.float64),
            "torque": _real(12),
        }
    )
    body = Dict(
        {
            "joints": joints,
            "inertia": Tuple((_real(3), _real(3), _real(4))),
            "contacts": MultiBinary(4),
            "gait": Discrete(5),
        }
    )
    goal = Dict(
        {
            "position": _real(3),
            "heading": _real(1),
            "kind": Discrete(8),
            "conditions": MultiBinary(3),
        }
    )
    return Dict(
        {
            "camera": camera,
            "body": body,
            "goal": goal,
            "battery": _real(1),
            "clock": Box(0, 10_000, (1,), np.int64),
            "heights": Box(-1000, 1000, (8, 8), np.int16),
            "inventory": Box(0, 99, (10,), np.int32),
            "terrain": Box(0, 12, (8, 8), np.int8),
        }
    )


def _still(observation_space: Callable[[], Space[Any]]) -> Environment:
    return Still(observation_space())


def _informative() -> Environment:
    return Informative(_vector_space())


GYMNASIUM_IDS = {
    "cartpole": "CartPole-v1",
    "mountain-car": "MountainCar-v0",
    "mountain-car-continuous": "MountainCarContinuous-v0",
    "pendulum": "Pendulum-v1",
    "acrobot": "Acrobot-v1",
    "blackjack": "Blackjack-v1",
    "frozen-lake": "FrozenLake-v1",
    "cliff-walking": "CliffWalking-v1",
    "taxi": "Taxi-v4",
}
"""The ids of the workloads that are environments of Gymnasium, by name."""

ATARI_RESETS = "-resets"
ATARI_ACTIONS = {
    f"{game}{suffix}": actions
    for game, actions in (("pong", 6), ("breakout", 4))
    for suffix in ("", ATARI_RESETS)
}
"""The number of actions of each workload that is an Atari game, without and with resets of single
slots."""


def _atari(name: str) -> Environment:
    title = name.removesuffix(ATARI_RESETS).capitalize()
    return gymnasium.make(f"ale_py:ALE/{title}-v5")


WORKLOADS = {
    workload.name: workload
    for workload in (
        Workload("noop", partial(_still, _vector_space)),
        *(Workload(name, partial(gymnasium.make, of), of) for name, of in GYMNASIUM_IDS.items()),
        Workload("burn100us", partial(Burning, 100.0)),
        Workload("burn1ms", partial(Burning, 1000.0)),
        Workload("image", partial(_still, _image_space)),
        Workload("dict", partial(_still, _robot_space)),
        Workload("info8", _informative),
        # The user-defined kernel of the examples, which has the action space of Pendulum-v1.
        Workload("swing", partial(gymnasium.make, "Pendulum-v1")),
        # Both players act at random, or both are scripted.
        Workload("hockey", partial(gymnasium.make, "shoal:shoal/Hockey-v0")),
        Workload("hockey-strong", partial(gymnasium.make, "shoal:shoal/Hockey-v0")),
        *(Workload(name, partial(_atari, name)) for name in ATARI_ACTIONS),
    )
}

STANDARD = ["noop", "cartpole", "burn100us", "burn1ms", "image", "dict", "info8"]
"""The workloads that ``python -m benchmarks run`` measures by default."""
