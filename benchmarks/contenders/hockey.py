"""Hockey: Shoal's kernel and Box2D driven from Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal._bench.contenders.base import (
    SEED,
    Contender,
    Lockstep,
    Vector,
    action_batches,
    open_lockstep,
)
from shoal._bench.workload import Workload

__all__ = ["Box2dHockey", "ShoalHockey"]


class ShoalHockey(Contender):
    """The kernel; both players are random in ``hockey`` and scripted in ``hockey-strong``."""

    packages = ("shoal", "gymnasium", "numpy")

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self._options = options

    def supports(self, workload: str) -> bool:
        """Return whether this is hockey."""
        return workload.startswith("hockey")

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector, and the players if they are scripted."""
        import shoal
        from shoal.hockey import BasicOpponents

        envs = shoal.make("shoal/Hockey-v0", num_envs, backend="kernel", **self._options)
        if workload.name == "hockey":
            return open_lockstep(envs, workload)
        players = [BasicOpponents(num_envs, weak=False, seed=seed) for seed in (1, 2)]
        actions = np.empty((num_envs, 8), np.float32)
        observations, _ = envs.reset(seed=SEED)

        def step(_: Any) -> object:
            nonlocal observations
            players[0].act(observations[:, 0], out=actions[:, :4])
            players[1].act(observations[:, 1], out=actions[:, 4:])
            observations, *results = envs.step(actions)
            return results

        return Lockstep(step, [actions], envs.close)


class Box2dHockey(Contender):
    """Box2D scenes that are stepped one after the other."""

    name = "box2d"
    packages = ("Box2D", "numpy")

    _SCENES = 16

    def supports(self, workload: str) -> bool:
        """Return whether this is hockey with random players."""
        return workload == "hockey"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create a few scenes: their number does not affect the speed of a scene."""
        from benchmarks.hockey_scene import HockeyScene

        scenes = [HockeyScene() for _ in range(min(self._SCENES, num_envs))]
        for scene in scenes:
            scene.reset()

        def step(actions: npt.NDArray[Any]) -> object:
            return [scene.play(action) for scene, action in zip(scenes, actions, strict=True)]

        return Lockstep(step, action_batches(workload, len(scenes)), scenes.clear)
