"""The contenders, by name, in the order in which tables and plots show them."""

from __future__ import annotations

from benchmarks.contenders.base import Contender, Vector
from benchmarks.contenders.envpool_vector import EnvPool
from benchmarks.contenders.gymnasium_vectors import GymnasiumAsync, GymnasiumSync
from benchmarks.contenders.loop import Loop
from benchmarks.contenders.pufferlib_vectors import PufferlibMultiprocessing, PufferlibSerial
from benchmarks.contenders.sb3_vectors import Sb3Dummy, Sb3Subproc
from benchmarks.contenders.shoal_vectors import Shoal, ShoalView

__all__ = ["CONTENDERS", "Contender", "Vector"]

CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Shoal(),
        ShoalView(),
        Loop(),
        GymnasiumSync(),
        GymnasiumAsync(),
        Sb3Dummy(),
        Sb3Subproc(),
        PufferlibSerial(),
        PufferlibMultiprocessing(),
        EnvPool(),
    )
}
