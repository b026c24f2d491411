"""Contenders that tests send to other processes."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
from gymnasium.spaces import Discrete

from shoal._bench.contenders.base import Contender, Lockstep, Vector, action_batches
from shoal._bench.workload import Workload


class Still(gymnasium.Env[Any, Any]):
    """Does nothing."""

    observation_space = Discrete(2)
    action_space: gymnasium.Space[Any] = Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, Any]:
        return 0, {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, Any]:
        assert action in self.action_space
        return 0, 0.0, False, False, {}


class Nested(Still):
    """Has a nested action space."""

    action_space = gymnasium.spaces.Dict({"left": Discrete(3), "right": Discrete(5)})


class Noting(Contender):
    """Notes which modules are loaded in its process."""

    name = "noting"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        vector = Lockstep(lambda _: None, action_batches(workload, num_envs), lambda: None)
        native = any(name.startswith("shoal._native") for name in sys.modules)
        vector.note = f"native: {native}, contender: {type(self).__module__ in sys.modules}"
        return vector


class Named(Contender):
    """A contender with a given note."""

    def __init__(self, name: str, note: str) -> None:
        self.name = name
        self._note = note

    def open(self, workload: Workload, num_envs: int) -> Vector:
        vector = Lockstep(lambda _: None, action_batches(workload, num_envs), lambda: None)
        vector.note = self._note
        return vector
