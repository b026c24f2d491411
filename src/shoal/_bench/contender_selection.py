"""Who is measured for an environment: the loop, all of Shoal's ways to step it, and peers."""

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
"""The libraries that may be measured besides."""

LOOP = Loop.name

_MOST_WAITING = 64
"""No more workers than that are tried."""


@dataclass
class ContenderSelection:
    """The contenders, in the order in which to show them, and who is left out, with the reason."""

    loop: Loop
    ways: list[Shoal]
    """Shoal's, the simplest to ask for first; the very first is ``backend="auto"``."""
    peers: list[Contender]
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def contenders(self) -> list[Contender]:
        """All of them."""
        return [*self.ways, self.loop, *self.peers]

    def names(self, num_envs: int) -> list[str]:
        """Those to be measured with so many: no worker is to be without an environment."""
        idle = {way.name for way in self.ways if way.options.get("workers", 0) > num_envs}
        return [each.name for each in self.contenders if each.name not in idle]


def select_contenders(
    workload: Workload,
    seen: EnvProfile,
    against: Collection[str],
    num_envs: Sequence[int],
    *,
    workers: Sequence[int] = (),
    has_arguments: bool = False,
) -> ContenderSelection:
    """Choose who is measured.

    Args:
        workload: What is stepped.
        seen: What it is like.
        against: Which of ``PEERS``.
        num_envs: With how many environments they will be measured.
        workers: How many worker processes Shoal has, in turn; by default it depends on the cores,
            and for an environment that waits on the number of environments.
        has_arguments: Whether its constructor is given any, which other libraries may not know.
    """
    chosen = ContenderSelection(Loop(), _ways(seen, workers, num_envs), [])
    if "gymnasium" in against:
        chosen.peers += [GymnasiumSync(), GymnasiumAsync()]
        if seen.has_own_vector and not has_arguments:
            chosen.peers.append(GymnasiumOwn())
    if "sb3" in against:
        if find_spec("stable_baselines3") is None:
            chosen.left_out["sb3"] = 'not installed: pip install "shoal[sb3]"'
        else:
            chosen.peers += [Sb3Dummy(), Sb3Subproc()]
    if "envpool" in against:
        reason = _why_no_envpool(workload, has_arguments)
        if reason:
            chosen.left_out["envpool"] = reason
        else:
            chosen.peers.append(EnvPool())
    return chosen


def worker_counts(cores: int) -> list[int]:
    """Choose a few numbers of workers: powers of two, and as many as cores, with a caller or not.

    >>> worker_counts(1), worker_counts(2), worker_counts(6)
    ([1], [1, 2], [1, 2, 4, 5, 6])
    """
    powers = {1 << power for power in range(cores.bit_length())}
    return sorted(powers | {max(1, cores - 1), cores})


def _ways(seen: EnvProfile, workers: Sequence[int], num_envs: Sequence[int]) -> list[Shoal]:
    ways = [Shoal(SUBJECT)]
    if seen.has_kernel:
        # What auto is where there is one; here on one thread.
        ways.append(Shoal(f"{SUBJECT}-kernel-0", backend="kernel", workers=0))
    if seen.is_kernel:
        return ways
    ways.append(Shoal(f"{SUBJECT}-inline", backend="inline"))
    ways.append(Shoal(f"{SUBJECT}-thread", backend="thread"))
    waiting = [count for count in num_envs if seen.waits and 1 < count <= _MOST_WAITING]
    processes = workers or sorted({*worker_counts(available_cores()), *waiting})
    for backend, counts in (("thread", waiting), ("process", processes)):
        ways += [
            Shoal(f"{SUBJECT}-{backend}-{count}", backend=backend, workers=count)
            for count in counts
        ]
    return ways


def _why_no_envpool(workload: Workload, has_arguments: bool) -> str | None:
    if workload.id is None:
        return "steps environments of its own only, known by their ids"
    if has_arguments:
        return "steps environments of its own, whose arguments are others"
    if find_spec("envpool") is None:
        return "not installed: pip install envpool"
    return None
