"""What wrappers cost by themselves: Shoal's and Stable-Baselines3's, in one process."""

from __future__ import annotations

from collections.abc import Collection
from importlib import import_module
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from gymnasium.spaces import Box

from benchmarks.alone import call_alone
from benchmarks.prepared import PreparedVecEnv
from shoal._bench.contenders.base import Lockstep
from shoal._bench.process import ContenderError
from shoal._bench.results import Cell, summarize
from shoal._bench.runner import Settings

__all__ = ["BARE", "WRAPPERS", "measure_wrapper", "rates_alone"]

BARE = "bare"
"""The vector without a wrapper, whose time is taken off that of the wrapped ones."""

_LIBRARIES = {"shoal-sb3": "shoal.sb3", "sb3": "stable_baselines3.common.vec_env"}

# It costs nothing to take turns within a process, so the rounds are more and shorter ones.
_ROUNDS_IN_A_ROUND = 4

_WARM_UP_SECONDS = 0.02


class _Wrapping(NamedTuple):
    """What a wrapper is put around, and how it is made."""

    space: Box
    options: dict[str, Any]


WRAPPERS = {
    "VecFrameStack": _Wrapping(Box(0, 255, (84, 84, 1), np.uint8), {"n_stack": 4}),
    "VecNormalize": _Wrapping(Box(-np.inf, np.inf, (64,), np.float32), {}),
}
"""The wrappers, by the name that they have in both libraries."""


def measure_wrapper(
    settings: Settings, wrapper: str, num_envs: int, names: Collection[str]
) -> Cell:
    """Measure the wrapper of each of these libraries around vectors that cost nothing.

    The rates are those of the wrapper alone: in every round the time of the bare vector is taken
    off. Its own rate is in the cell too.
    """
    libraries = [name for name in _LIBRARIES if name in names]
    cell = Cell(wrapper, num_envs, [*libraries, BARE])
    stepping = settings.rounds * settings.seconds * len(cell.contenders)
    try:
        # By themselves, so that Stable-Baselines3 is not imported here, where others are measured.
        rates = call_alone(
            rates_alone,
            wrapper,
            num_envs,
            libraries,
            settings,
            timeout=settings.timeout + stepping,
        )
    except ContenderError as error:
        cell.failures = dict.fromkeys(cell.contenders, str(error))
        return cell
    cell.rates = rates
    microseconds = num_envs / summarize(rates[BARE]).median * 1e6
    cell.notes[BARE] = f"{microseconds:.2f} us a step, taken off"
    return cell


def rates_alone(
    wrapper: str, num_envs: int, libraries: Collection[str], settings: Settings
) -> dict[str, list[float]]:
    """Step all in turn; returns the rates of each library's wrapper alone, and the bare vector's.

    Imports the libraries; see ``measure_wrapper``.
    """
    vectors = {name: _stepped(_wrapped(name, wrapper, num_envs)) for name in libraries}
    vectors[BARE] = _stepped(PreparedVecEnv(WRAPPERS[wrapper].space, num_envs))
    order = list(vectors)
    seconds: dict[str, list[float]] = {name: [] for name in vectors}
    for vector in vectors.values():
        vector.step_many(_WARM_UP_SECONDS)
    for _ in range(settings.rounds * _ROUNDS_IN_A_ROUND):
        order = [*order[1:], order[0]]
        for name in order:
            steps, elapsed = vectors[name].step_many(settings.seconds / _ROUNDS_IN_A_ROUND)
            seconds[name].append(elapsed / steps)
    bare = np.array(seconds[BARE])
    alone = {name: 1 / (np.array(seconds[name]) - bare) for name in libraries}
    return {name: rates.tolist() for name, rates in chain(alone.items(), [(BARE, 1 / bare)])}


def _wrapped(library: str, wrapper: str, num_envs: int) -> Any:
    space, options = WRAPPERS[wrapper]
    wrapper_class = getattr(import_module(_LIBRARIES[library]), wrapper)
    return wrapper_class(PreparedVecEnv(space, num_envs), **options)


def _stepped(vec_env: Any) -> Lockstep:
    actions = np.zeros(vec_env.num_envs, np.int64)
    return Lockstep(_Learner(vec_env).step, [actions], close=lambda: None)


class _Learner:
    """Keeps what a step has returned until the next one is done, as learners do."""

    def __init__(self, vec_env: Any) -> None:
        self._vec_env = vec_env
        self._latest: Any = vec_env.reset()

    def step(self, actions: Any) -> None:
        self._latest = self._vec_env.step(actions)
