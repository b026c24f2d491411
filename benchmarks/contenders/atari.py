"""Atari vectors of Shoal, ale-py and EnvPool, and Gymnasium's wrappers in worker processes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.peers import InPeer
from benchmarks.workloads import ATARI_ACTIONS, ATARI_RESETS
from shoal._bench.atari_games import make_preprocessed_game
from shoal._bench.contenders.base import SEED, Contender, Lockstep, Vector
from shoal._bench.workload import Workload

__all__ = ["AlePy", "EnvPoolAtari", "GymnasiumAtari", "Sb3Atari", "ShoalAtari"]

_STEPS = 256
_RESETS = 1 / 50
"""The probability that a slot is reset before a step, in workloads with resets."""


class _AtariContender(Contender):
    """A contender for Atari games."""

    def supports(self, workload: str) -> bool:
        """Return whether this is a game without resets: most vectors cannot reset single slots."""
        return workload in ATARI_ACTIONS and not workload.endswith(ATARI_RESETS)


class AlePy(_AtariContender):
    """ale-py's vector environment with one thread per core; more threads are not faster."""

    name = "ale-py"
    packages = ("ale-py", "gymnasium", "numpy")

    def supports(self, workload: str) -> bool:
        """Return whether this is a game."""
        return workload in ATARI_ACTIONS

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its threads."""
        from ale_py.vector_env import AtariVectorEnv

        return _started(AtariVectorEnv(_game(workload), num_envs), workload)


class ShoalAtari(_AtariContender):
    """Shoal's vector environment."""

    packages = ("shoal", "ale-py", "gymnasium", "numpy")

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self._options = options

    def supports(self, workload: str) -> bool:
        """Return whether this is a game."""
        return workload in ATARI_ACTIONS

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        from shoal.atari import AtariVectorEnv

        return _started(AtariVectorEnv(_game(workload), num_envs, **self._options), workload)


class EnvPoolAtari(InPeer, _AtariContender):
    """EnvPool's games on threads."""

    name = "envpool-atari"
    peer = "envpool"
    packages = ("envpool", "gymnasium", "numpy")

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its threads."""
        import envpool

        envs = envpool.make_gymnasium(
            f"{workload.name.capitalize()}-v5", num_envs=num_envs, seed=SEED, reward_clip=True
        )
        envs.reset()
        return Lockstep(envs.step, _actions(workload, num_envs, np.int32), envs.close)


class GymnasiumAtari(_AtariContender):
    """Gymnasium's wrappers around ale-py's environment, in Gymnasium's worker processes."""

    name = "gymnasium-atari"
    packages = ("ale-py", "gymnasium", "numpy")

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        from gymnasium.vector import AsyncVectorEnv

        envs = AsyncVectorEnv([partial(_wrapped, workload.name)] * num_envs)
        envs.reset(seed=SEED)
        return Lockstep(envs.step, _actions(workload, num_envs), envs.close)


class Sb3Atari(_AtariContender):
    """Gymnasium's wrappers in Stable-Baselines3's worker processes."""

    name = "sb3-atari"
    packages = ("stable-baselines3", "ale-py", "gymnasium", "numpy")

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        from stable_baselines3.common.vec_env import SubprocVecEnv

        envs = SubprocVecEnv([partial(_wrapped, workload.name)] * num_envs)
        envs.reset()
        return Lockstep(envs.step, _actions(workload, num_envs), envs.close)


def _game(workload: Workload) -> str:
    return workload.name.removesuffix(ATARI_RESETS)


def _wrapped(game: str) -> Any:
    return make_preprocessed_game(f"ALE/{game.capitalize()}-v5", repeat_action_probability=0.0)


def _started(envs: Any, workload: Workload) -> Lockstep:
    envs.reset(seed=SEED)
    actions = _actions(workload, envs.num_envs)
    envs.step(actions[0])  # creates the emulators that are not needed before
    step = _with_resets(envs) if workload.name.endswith(ATARI_RESETS) else envs.step
    return Lockstep(step, actions, envs.close)


def _with_resets(envs: Any) -> Callable[[Any], object]:
    random = np.random.default_rng(SEED)

    def step(actions: Any) -> object:
        mask = random.random(envs.num_envs) < _RESETS
        if mask.any():
            envs.reset(options={"reset_mask": mask})
        return envs.step(actions)

    return step


def _actions(
    workload: Workload, num_envs: int, dtype: type[np.integer[Any]] = np.int64
) -> list[npt.NDArray[Any]]:
    random = np.random.default_rng(SEED)
    count = ATARI_ACTIONS[workload.name]
    return [*random.integers(count, size=(_STEPS, num_envs)).astype(dtype)]
