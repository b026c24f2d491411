"""Shoal's built-in kernels, and a user-defined kernel in C and in numba."""

from __future__ import annotations

from collections.abc import Callable
from importlib import util
from pathlib import Path
from typing import Any

from benchmarks.contenders.shoal_vectors import FirstCome
from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.contenders.base import SEED, Contender, Vector, open_lockstep
from shoal._bench.workload import Workload

__all__ = ["OwnKernel", "ShoalKernel", "ShoalKernelFirstCome", "swing_in_c", "swing_in_numba"]

_PACKAGES = ("shoal", "gymnasium", "numpy")
_EXAMPLE = Path(__file__).parents[2] / "examples" / "kernel_in_numba.py"


class ShoalKernel(Contender):
    """The kernel of a Gymnasium environment."""

    packages = _PACKAGES

    def __init__(self, name: str, **options: Any) -> None:
        self.name = name
        self._options = options

    def supports(self, workload: str) -> bool:
        """Return whether there is a kernel for this environment."""
        return workload in GYMNASIUM_IDS

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector; its threads start when they are needed."""
        import shoal

        env_id = GYMNASIUM_IDS[workload.name]
        envs = shoal.make(env_id, num_envs, backend="kernel", **self._options)
        return open_lockstep(envs, workload)


class ShoalKernelFirstCome(ShoalKernel):
    """A kernel whose slots are sent again as soon as half of them were received."""

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Create the vector."""
        import shoal

        envs = shoal.make(GYMNASIUM_IDS[workload.name], num_envs, backend="kernel")
        envs.reset(seed=SEED)
        return FirstCome(envs, workload, min_slots=max(1, num_envs // 2))


class OwnKernel(Contender):
    """A user-defined kernel on one thread."""

    packages = (*_PACKAGES, "numba")

    def __init__(self, name: str, load: Callable[[], Any]) -> None:
        self.name = name
        self._load = load

    def supports(self, workload: str) -> bool:
        """Return whether this is the environment of the example."""
        return workload == "swing"

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Build the kernel and create the vector."""
        import shoal

        return open_lockstep(
            shoal.make(self._load(), num_envs, backend="kernel", workers=0), workload
        )


def swing_in_numba() -> Any:
    """Return the kernel of the example."""
    spec = util.spec_from_file_location("kernel_in_numba", _EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Swing


def swing_in_c() -> Any:
    """Return the same kernel in C."""
    import shoal
    from benchmarks.native_code import built

    return shoal.kernels.load(built("swing", f"-I{shoal.kernels.include_dir()}"))
