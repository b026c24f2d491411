"""The cost of a wrapper alone, of Shoal and of Stable-Baselines3."""

from __future__ import annotations

from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from benchmarks.prepared import PreparedVecEnv
from benchmarks.turns import Measuring, Sampler, Samplers
from shoal._bench.contenders.base import Lockstep

__all__ = ["LIBRARIES", "WRAPPERS", "WrapperAlone", "samplers", "wrapped"]

LIBRARIES = {"shoal.sb3": "shoal.sb3", "stable_baselines3": "stable_baselines3.common.vec_env"}
"""The module of the wrappers of each contender."""

_WARM_UP_SECONDS = 0.02
_TURNS = 4
"""How often the wrapped and the bare vector alternate within a round."""


class _Wrapping(NamedTuple):
    space: Box
    """The observation space of the vector that is wrapped."""
    options: dict[str, Any]


WRAPPERS = {
    "VecFrameStack": _Wrapping(Box(0, 255, (84, 84, 1), np.uint8), {"n_stack": 4}),
    "VecNormalize": _Wrapping(Box(-np.inf, np.inf, (64,), np.float32), {}),
}
"""The wrappers by the name that they have in both libraries."""


def samplers(workload: str, size: int, settings: Measuring) -> Samplers:  # noqa: ARG001
    """Return the makers of all samplers of a cell."""
    return {name: partial(WrapperAlone, name, workload, size) for name in LIBRARIES}


class WrapperAlone(Sampler):
    """The rate of a wrapper around a vector whose own time is subtracted."""

    def __init__(self, library: str, wrapper: str, num_envs: int) -> None:
        self._wrapped = _stepped(wrapped(library, wrapper, num_envs))
        self._bare = _stepped(PreparedVecEnv(WRAPPERS[wrapper].space, num_envs))
        for each in (self._wrapped, self._bare):
            each.step_many(_WARM_UP_SECONDS)

    def sample(self, seconds: float) -> float:
        """Return the steps per second of the wrapper alone."""
        taken = []
        for _ in range(_TURNS):
            wrapped, bare = (
                _seconds_per_step(each, seconds / _TURNS) for each in (self._wrapped, self._bare)
            )
            taken.append(wrapped - bare)
        return float(1 / np.median(taken))


def wrapped(library: str, wrapper: str, num_envs: int) -> Any:
    """Return the wrapper of a library around prepared batches."""
    space, options = WRAPPERS[wrapper]
    wrapper_class = getattr(import_module(LIBRARIES[library]), wrapper)
    return wrapper_class(PreparedVecEnv(space, num_envs), **options)


def _seconds_per_step(vector: Lockstep, seconds: float) -> float:
    steps, elapsed = vector.step_many(seconds)
    return elapsed / steps


def _stepped(vec_env: Any) -> Lockstep:
    actions = np.zeros(vec_env.num_envs, np.int64)
    return Lockstep(_Learner(vec_env).step, [actions], close=lambda: None)


class _Learner:
    """Keeps the results of a step until the next one is done, as learners do."""

    def __init__(self, vec_env: Any) -> None:
        self._vec_env = vec_env
        self._latest: Any = vec_env.reset()

    def step(self, actions: Any) -> None:
        self._latest = self._vec_env.step(actions)
