"""Steps a vector for somebody who just wants to watch it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from inspect import signature
from itertools import cycle
from typing import Any

import gymnasium
from gymnasium.envs.registration import load_env_creator

import shoal
from shoal._envs.atari.registered_ids import is_atari
from shoal.vector._pool_vector_env import VectorEnv

__all__ = ["Policy", "make_vector", "random_policy", "run_loop"]

Policy = Callable[[Any], Any]
"""From the observations of all slots to their actions."""

_BATCHES = 64
_MOST_ACTIONS = 65_536


def make_vector(
    what: Any,
    num_envs: int,
    options: Mapping[str, Any],
    arguments: Mapping[str, Any],
    with_pictures: bool,
) -> VectorEnv:
    """Make what :func:`shoal.make` or :func:`shoal.connect` makes, able to show itself if it can.

    Args:
        what: What :func:`shoal.make` takes, or the address of a server.
        num_envs: How many slots.
        options: Of the vector.
        arguments: Of the environments.
        with_pictures: Whether they are to be seen, where they have a mode for that.
    """
    if isinstance(what, str) and "://" in what:
        return shoal.connect(what, num_envs)
    given = dict(arguments)
    if with_pictures and "render_mode" not in given and _can_render(what):
        given["render_mode"] = "rgb_array"
    return shoal.make(what, num_envs, **options, **given)


def _can_render(what: Any) -> bool:
    """Whether environments can be made with a mode in which they give pictures."""
    if is_atari(what):
        return True
    made_by: Any = gymnasium.spec(what).entry_point if isinstance(what, str) else what
    if isinstance(made_by, str):
        made_by = load_env_creator(made_by)
    modes = getattr(made_by, "metadata", {}).get("render_modes", ())
    return "rgb_array" in modes and "render_mode" in signature(made_by).parameters


def random_policy(envs: VectorEnv, seed: int | None) -> Policy:
    """A policy that takes random actions: of a few batches, drawn beforehand, one after the other.

    Args:
        envs: Whose actions.
        seed: Of the actions.
    """
    envs.action_space.seed(seed)
    count = max(2, min(_BATCHES, _MOST_ACTIONS // envs.num_envs))
    batches = cycle([envs.action_space.sample() for _ in range(count)])
    return lambda _: next(batches)


def run_loop(
    envs: VectorEnv,
    policy: Policy,
    *,
    seed: int | None,
    seconds: float | None,
    rate: float | None,
    look: Callable[[], None],
) -> None:
    """Reset a vector, and step it until the time is over; for ever if there is no end.

    Args:
        envs: The vector. Slots are reset by themselves.
        policy: What acts.
        seed: Of the environments.
        seconds: When to end.
        rate: Batches in a second at the most.
        look: Called after each batch.
    """
    observations, _ = envs.reset(seed=seed)
    now = began = time.perf_counter()
    while seconds is None or now - began < seconds:
        due = now if rate is None else now + 1 / rate
        observations, *_ = envs.step(policy(observations))
        look()
        now = time.perf_counter()
        if now < due:
            time.sleep(due - now)
            now = due
