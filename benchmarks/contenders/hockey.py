"""Hockey: Shoal's kernel, and Box2D driven from Python."""

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
    """The kernel. In ``hockey`` both players act at random, in ``hockey-strong`` by a script."""

    packages = ("shoal", "gymnasium", "numpy")

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self._options = options

    def supports(self, workload: str) -> bool:
        """Only hockey."""
        return workload.startswith("hockey")

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make the vector, and the players where they are ours."""
        import shoal
        from shoal.hockey import BasicOpponents

        envs = shoal.make("shoal/Hockey-v0", num_envs, backend="kernel", **self._options)
        if workload.name == "hockey":
            return open_lockstep(envs, workload)
        players = [BasicOpponents(num_envs, weak=False, seed=seed) for seed in (1, 2)]
        actions = np.empty((num_envs, 8), np.float32)
        seen, _ = envs.reset(seed=SEED)

        def step(_: Any) -> object:
            nonlocal seen
            players[0].act(seen[:, 0], out=actions[:, :4])
            players[1].act(seen[:, 1], out=actions[:, 4:])
            seen, *results = envs.step(actions)
            return results

        return Lockstep(step, [actions], envs.close)


class Box2dHockey(Contender):
    """Scenes of Box2D, one after the other."""

    name = "box2d"
    packages = ("Box2D", "numpy")

    _SCENES = 16

    def supports(self, workload: str) -> bool:
        """Only hockey between players at random."""
        return workload == "hockey"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Make a few scenes: how many there are does not matter to the speed of one."""
        from benchmarks.hockey_scene import HockeyScene

        scenes = [HockeyScene() for _ in range(min(self._SCENES, num_envs))]
        for scene in scenes:
            scene.reset()

        def step(actions: npt.NDArray[Any]) -> object:
            return [scene.play(action) for scene, action in zip(scenes, actions, strict=True)]

        return Lockstep(step, action_batches(workload, len(scenes)), scenes.clear)
