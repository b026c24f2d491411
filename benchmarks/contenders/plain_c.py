"""Plain loops in C: the cost of the physics alone."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from benchmarks.workloads import GYMNASIUM_IDS
from shoal._bench.contenders.base import Contender, Lockstep, Vector, action_batches
from shoal._bench.workload import Environment, Workload

__all__ = ["PlainC"]

_TABLES = ("frozen-lake", "cliff-walking", "taxi")


class _Struct(ctypes.Structure):
    """``vector`` of plain_loops.c."""

    _fields_ = [
        ("count", ctypes.c_int64),
        ("limit", ctypes.c_int64),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *("state", "length", "done", "random", "action"),
                *("observation", "reward", "terminated", "truncated"),
            )
        ),
        ("actions", ctypes.c_int64),
        ("initial_count", ctypes.c_int64),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *("start", "next", "cumulative", "rewards", "initial", "probabilities"),
                *("ends", "masks", "probability", "mask"),
            )
        ),
    ]


class PlainC(Contender):
    """A loop over all environments on one core."""

    name = "plain-c"

    def supports(self, workload: str) -> bool:
        """Return whether there is a loop for this environment."""
        return workload in GYMNASIUM_IDS

    def open(self, workload: Workload, num_envs: int) -> Vector:
        """Compile the loops; the first step resets every environment."""
        import shoal
        from benchmarks.native_code import built

        options = f"-I{shoal.kernels.include_dir()}"
        library = ctypes.CDLL(str(built("plain_loops", options)))
        name = "table" if workload.name in _TABLES else workload.name.replace("-", "_")
        loop = getattr(library, name)
        env = workload.make()
        memory: dict[str, npt.NDArray[Any]] = {
            "state": np.zeros((num_envs, 4)),
            "length": np.zeros(num_envs, np.int64),
            "done": np.ones(num_envs, np.uint8),
            "random": _generators(num_envs),
            "observation": np.zeros((num_envs, 6)),
            "reward": np.zeros(num_envs),
            "terminated": np.zeros(num_envs, np.uint8),
            "truncated": np.zeros(num_envs, np.uint8),
            **(_table(env, num_envs) if name == "table" else {}),
        }
        struct = _Struct(count=num_envs, limit=(env.spec and env.spec.max_episode_steps) or 0)
        for field, array in memory.items():
            setattr(struct, field, array.ctypes.data)
        if name == "table":
            struct.actions = len(env.unwrapped.P[0])  # type: ignore[attr-defined]
            struct.initial_count = len(memory["initial"])
        env.close()
        pointer = ctypes.byref(struct)

        def step(actions: npt.NDArray[Any]) -> object:
            struct.action = actions.ctypes.data
            loop(pointer)
            return memory

        return Lockstep(step, action_batches(workload, num_envs), memory.clear)


def _generators(count: int) -> npt.NDArray[np.uint64]:
    """Return a PCG64 per environment, as ``shoal_random``: state, increment, no stored half."""
    words = np.zeros((count, 5), np.uint64)
    words[:, :4] = np.random.SeedSequence(0).generate_state(4 * count, np.uint64).reshape(-1, 4)
    words[:, 2] |= np.uint64(1)  # an increment is odd
    return words


def _table(env: Environment, num_envs: int) -> dict[str, npt.NDArray[Any]]:
    unwrapped: Any = env.unwrapped
    masks = {}
    if hasattr(unwrapped, "action_mask"):
        masks["masks"] = np.stack([unwrapped.action_mask(state) for state in unwrapped.P])
    pairs = [outcomes for actions in unwrapped.P.values() for outcomes in actions.values()]
    outcomes = [outcome for pair in pairs for outcome in pair]
    return {
        **masks,
        "probability": np.zeros(num_envs),
        "mask": np.zeros((num_envs, 6), np.int8),
        "probabilities": np.array([outcome[0] for outcome in outcomes], np.float64),
        "start": np.cumsum([0, *map(len, pairs)]).astype(np.int64),
        "next": np.array([outcome[1] for outcome in outcomes], np.int64),
        "cumulative": np.concatenate([np.cumsum([o[0] for o in pair]) for pair in pairs]),
        "rewards": np.array([outcome[2] for outcome in outcomes], np.float64),
        "initial": np.cumsum(unwrapped.initial_state_distrib),
        "ends": np.array([outcome[3] for outcome in outcomes], np.uint8),
    }
