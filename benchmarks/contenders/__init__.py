"""The contenders, by name, in the order in which tables and plots show them."""

from __future__ import annotations

from benchmarks.contenders.atari import (
    AlePy,
    EnvPoolAtari,
    GymnasiumAtari,
    Sb3Atari,
    ShoalAtari,
)
from benchmarks.contenders.envpool_vector import EnvPool, EnvPoolAsync
from benchmarks.contenders.hockey import Box2dHockey, ShoalHockey
from benchmarks.contenders.plain_c import PlainC
from benchmarks.contenders.pufferlib_vectors import PufferlibMultiprocessing, PufferlibSerial
from benchmarks.contenders.rllib_runners import RLLIB_CONTENDERS
from benchmarks.contenders.sb3_vectors import Sb3Dummy, Sb3Subproc
from benchmarks.contenders.shoal_kernels import (
    OwnKernel,
    ShoalKernel,
    ShoalKernelFirstCome,
    swing_in_c,
    swing_in_numba,
)
from benchmarks.contenders.shoal_sb3_vectors import ShoalSb3Dummy, ShoalSb3Subproc
from benchmarks.contenders.shoal_vectors import ShoalFirstCome
from benchmarks.contenders.tianshou_collectors import (
    ShoalTianshou,
    TianshouDummy,
    TianshouShmem,
    TianshouSubproc,
)
from benchmarks.contenders.torchrl_collectors import TORCHRL_CONTENDERS
from shoal._bench.contenders.base import Contender, Vector
from shoal._bench.contenders.gymnasium_vectors import GymnasiumAsync, GymnasiumSync
from shoal._bench.contenders.loop import Loop
from shoal._bench.contenders.shoal_vectors import Shoal

__all__ = ["CONTENDERS", "STANDARD", "Contender", "Vector"]

CONTENDERS: dict[str, Contender] = {
    contender.name: contender
    for contender in (
        Shoal("shoal"),
        Shoal("shoal-view", copy=False),
        Shoal("shoal-inline", backend="inline"),
        Shoal("shoal-process", backend="process"),
        *(
            Shoal(f"shoal-process-{workers}", backend="process", workers=workers)
            for workers in (1, 2, 4, 8, 15)
        ),
        ShoalFirstCome(),
        Shoal("shoal-ray", backend="ray", workers=2),
        ShoalKernel("shoal-kernel"),
        ShoalKernel("shoal-kernel-1", workers=0),
        ShoalKernelFirstCome("shoal-kernel-first-come"),
        OwnKernel("shoal-kernel-c", swing_in_c),
        OwnKernel("shoal-kernel-numba", swing_in_numba),
        PlainC(),
        ShoalHockey("shoal-hockey", copy=False),
        ShoalHockey("shoal-hockey-1", workers=0, copy=False),
        Box2dHockey(),
        ShoalAtari("shoal-atari"),
        ShoalAtari("shoal-atari-1", num_threads=1),
        AlePy(),
        EnvPoolAtari(),
        GymnasiumAtari(),
        Sb3Atari(),
        ShoalSb3Dummy(),
        ShoalSb3Subproc(),
        ShoalTianshou("shoal-tianshou", backend="auto"),
        ShoalTianshou("shoal-tianshou-python", backend="python"),
        TianshouDummy(),
        TianshouSubproc(),
        TianshouShmem(),
        Loop(),
        GymnasiumSync(),
        GymnasiumAsync(),
        Sb3Dummy(),
        Sb3Subproc(),
        PufferlibSerial(),
        PufferlibMultiprocessing(),
        EnvPool(),
        EnvPoolAsync(),
        *TORCHRL_CONTENDERS,
        *RLLIB_CONTENDERS,
    )
}

STANDARD = [
    "shoal",
    "shoal-process",
    "shoal-kernel",
    "loop",
    "gymnasium-sync",
    "gymnasium-async",
    "sb3-dummy",
    "sb3-subproc",
    "pufferlib-serial",
    "pufferlib-mp",
    "envpool",
]
"""The contenders that ``python -m benchmarks run`` measures by default."""
