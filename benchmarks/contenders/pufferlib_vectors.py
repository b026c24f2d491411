"""PufferLib's vectors of emulated Gymnasium environments."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from benchmarks.peers import InPeer
from shoal._bench.contenders.base import Contender, Vector, open_lockstep
from shoal._bench.workload import Workload

__all__ = ["PufferlibMultiprocessing", "PufferlibSerial"]


class _Pufferlib(InPeer, Contender):
    peer = "pufferlib"
    packages = ("pufferlib", "gymnasium", "numpy")


class PufferlibSerial(_Pufferlib):
    """The ``Serial`` backend: one environment after the other."""

    name = "pufferlib-serial"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector in this process."""
        from pufferlib.vector import Serial

        return _made(workload, num_envs, backend=Serial)


class PufferlibMultiprocessing(_Pufferlib):
    """The ``Multiprocessing`` backend: one process per core."""

    name = "pufferlib-mp"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector and its processes."""
        from pufferlib.vector import Multiprocessing

        cores = len(os.sched_getaffinity(0))
        workers = max(n for n in range(1, cores + 1) if num_envs % n == 0)
        # Without overwork, PufferLib refuses more workers than physical cores.
        return _made(
            workload, num_envs, backend=Multiprocessing, num_workers=workers, overwork=True
        )


def _made(workload: Workload, num_envs: int, **options: Any) -> Vector:
    import pufferlib.vector
    from pufferlib.emulation import GymnasiumPufferEnv

    emulated = partial(GymnasiumPufferEnv, env_creator=workload.make)
    envs = pufferlib.vector.make(emulated, num_envs=num_envs, **options)
    return open_lockstep(envs, workload)
