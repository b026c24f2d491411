"""Select the contenders for an environment: a loop, configurations of Shoal, other libraries."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec

from shoal._bench.contenders.base import Contender
from shoal._bench.contenders.envpool_vector import EnvPool
from shoal._bench.contenders.gymnasium_vectors import GymnasiumAsync, GymnasiumOwn, GymnasiumSync
from shoal._bench.contenders.loop import Loop
from shoal._bench.contenders.sb3_vectors import Sb3Dummy, Sb3Subproc
from shoal._bench.contenders.shoal_vectors import Shoal
from shoal._bench.probe import EnvProfile
from shoal._bench.results import SUBJECT
from shoal._bench.workload import Workload
from shoal.pools._shares import available_cores

__all__ = ["LOOP", "PEERS", "ContenderSelection", "select_contenders", "worker_counts"]

PEERS = ("gymnasium", "sb3", "envpool")
"""The other libraries that can be compared."""

LOOP = Loop.name

_MAX_WORKERS_IF_WAITING = 64
"""For environments that wait, a worker for each environment is measured up to this number."""


@dataclass
class ContenderSelection:
    """The contenders in display order, and the libraries that are skipped, with the reasons."""

    loop: Loop
    configurations: list[Shoal]
    """Configurations of Shoal, the simplest first; the first is ``backend="auto"``."""
    peers: list[Contender]
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def contenders(self) -> list[Contender]:
        """All contenders."""
        return [*self.configurations, self.loop, *self.peers]

    def names(self, num_envs: int) -> list[str]:
        """Return the contenders to measure: those without more workers than environments."""
        idle = {
            each.name for each in self.configurations if each.options.get("workers", 0) > num_envs
        }
        return [each.name for each in self.contenders if each.name not in idle]


def select_contenders(
    workload: Workload,
    profile: EnvProfile,
    against: Collection[str],
    num_envs: Sequence[int],
    *,
    workers: Sequence[int] = (),
    has_arguments: bool = False,
) -> ContenderSelection:
    """Select the contenders.

    Args:
        workload: The environment.
        profile: Its properties.
        against: Libraries to include, from ``PEERS``.
        num_envs: The numbers of environments that will be measured.
        workers: The numbers of Shoal's worker processes; by default derived from the number of
            cores, and for an environment that waits also from ``num_envs``.
        has_arguments: Whether the user passes constructor arguments, which other libraries'
            environments may not accept.
    """
    chosen = ContenderSelection(Loop(), _configurations(profile, workers, num_envs), [])
    if "gymnasium" in against:
        chosen.peers += [GymnasiumSync(), GymnasiumAsync()]
        if profile.has_own_vector and not has_arguments:
            chosen.peers.append(GymnasiumOwn())
    if "sb3" in against:
        if find_spec("stable_baselines3") is None:
            chosen.skipped["sb3"] = 'not installed: pip install "shoal[sb3]"'
        else:
            chosen.peers += [Sb3Dummy(), Sb3Subproc()]
    if "envpool" in against:
        reason = _envpool_skip_reason(workload, has_arguments)
        if reason:
            chosen.skipped["envpool"] = reason
        else:
            chosen.peers.append(EnvPool())
    return chosen


def worker_counts(cores: int) -> list[int]:
    """Return numbers of workers to try: powers of two, all cores, and one core less.

    >>> worker_counts(1), worker_counts(2), worker_counts(6)
    ([1], [1, 2], [1, 2, 4, 5, 6])
    """
    powers = {1 << power for power in range(cores.bit_length())}
    return sorted(powers | {max(1, cores - 1), cores})


def _configurations(
    profile: EnvProfile, workers: Sequence[int], num_envs: Sequence[int]
) -> list[Shoal]:
    configurations = [Shoal(SUBJECT)]
    if profile.has_kernel:
        # "auto" uses the kernel with several threads; this one uses the calling thread only.
        configurations.append(Shoal(f"{SUBJECT}-kernel-0", backend="kernel", workers=0))
    if profile.is_kernel:
        return configurations
    configurations.append(Shoal(f"{SUBJECT}-inline", backend="inline"))
    configurations.append(Shoal(f"{SUBJECT}-thread", backend="thread"))
    waiting = [
        count for count in num_envs if profile.waits and 1 < count <= _MAX_WORKERS_IF_WAITING
    ]
    processes = workers or sorted({*worker_counts(available_cores()), *waiting})
    for backend, counts in (("thread", waiting), ("process", processes)):
        configurations += [
            Shoal(f"{SUBJECT}-{backend}-{count}", backend=backend, workers=count)
            for count in counts
        ]
    return configurations


def _envpool_skip_reason(workload: Workload, has_arguments: bool) -> str | None:
    if workload.id is None:
        return "supports only its built-in environments, by id"
    if has_arguments:
        return "its built-in environments take different arguments"
    if find_spec("envpool") is None:
        return "not installed: pip install envpool"
    return None
