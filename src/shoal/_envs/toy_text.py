"""Kernels for Gymnasium's tabular environments, which are defined by a transition table."""

from __future__ import annotations

import sys
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from shoal import _native
from shoal._envs.classic import from_prototype, ignore_options
from shoal.kernels._definition import Kernel

__all__ = ["cliff_walking", "frozen_lake", "taxi"]

Env = gymnasium.Env[Any, Any]


def frozen_lake(prototype: Env) -> Kernel:
    """Create the kernel for FrozenLake."""
    env: Any = prototype.unwrapped
    return _table(prototype, cells=env.desc, size=env.window_size)


def cliff_walking(prototype: Env) -> Kernel:
    """Create the kernel for CliffWalking."""
    env: Any = prototype.unwrapped
    cells = np.where(env._cliff, b"C", b"F").astype("S1")
    cells.flat[env.start_state_index] = b"S"
    cells.flat[-1] = b"G"
    return _table(prototype, cells=cells, size=env.window_size)


def taxi(prototype: Env) -> Kernel:
    """Create the kernel for Taxi."""
    env: Any = prototype.unwrapped
    size = sys.modules[type(env).__module__].WINDOW_SIZE
    states = range(env.observation_space.n)
    return _table(
        prototype,
        cells=np.full((5, 5), b"F"),
        size=size,
        action_masks=np.stack([env.action_mask(state) for state in states]).astype(np.int8),
        # Gymnasium 1.3 introduced this parameter; earlier versions used 0.3.
        fickle_probability=getattr(env, "fickle_probability", 0.3) if env.fickle_passenger else -1,
        is_taxi=True,
    )


def _table(
    prototype: Env,
    *,
    cells: npt.NDArray[np.bytes_],
    size: tuple[int, int],
    action_masks: npt.NDArray[np.int8] | None = None,
    fickle_probability: float = -1,
    is_taxi: bool = False,
) -> Kernel:
    env: Any = prototype.unwrapped
    pairs = [env.P[state][action] for state in sorted(env.P) for action in sorted(env.P[state])]
    outcomes = [outcome for pair in pairs for outcome in pair]
    native = _native.Kernel.of_table(
        {
            "name": f"{type(env).__name__} of {len(env.P)} states",
            "states": len(env.P),
            "actions": len(env.P[0]),
            "starts": np.cumsum([0, *map(len, pairs)]).astype(np.int32),
            # Summed in Gymnasium's order, so that the same draw selects the same outcome.
            "cumulative": np.concatenate([np.cumsum([p for p, *_ in pair]) for pair in pairs]),
            "probabilities": np.array([p for p, *_ in outcomes], np.float64),
            "next": np.array([state for _, state, *_ in outcomes], np.int32),
            "rewards": np.array([reward for _, _, reward, _ in outcomes], np.float64),
            "terminated": np.array([ended for *_, ended in outcomes], np.uint8),
            "initial": np.cumsum(env.initial_state_distrib),
            "action_masks": np.zeros(0, np.int8) if action_masks is None else action_masks,
            "fickle_probability": float(fickle_probability),
            "is_taxi": is_taxi,
            "rows": cells.shape[0],
            "columns": cells.shape[1],
            "cells": cells,
            "width": int(size[0]),
            "height": int(size[1]),
            "frames_per_second": int(prototype.metadata["render_fps"]),
        }
    )
    return from_prototype(prototype, native, {}, read_options=ignore_options)
