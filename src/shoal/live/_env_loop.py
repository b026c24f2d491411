"""Step a vector with a policy or with random actions, for ``shoal watch``."""

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
"""Maps the observations of all slots to their actions."""

_BATCHES = 64
_MAX_ACTIONS = 65_536


def make_vector(
    source: Any,
    num_envs: int,
    options: Mapping[str, Any],
    arguments: Mapping[str, Any],
    with_pictures: bool,
) -> VectorEnv:
    """Create a vector with :func:`shoal.make` or :func:`shoal.connect`.

    Args:
        source: The first argument of :func:`shoal.make`, or the address of a server.
        num_envs: The number of slots.
        options: Options of the vector.
        arguments: Arguments of the environments.
        with_pictures: Whether to set a render mode, if the environments support it.
    """
    if isinstance(source, str) and "://" in source:
        return shoal.connect(source, num_envs)
    env_kwargs = dict(arguments)
    if with_pictures and "render_mode" not in env_kwargs and _can_render(source):
        env_kwargs["render_mode"] = "rgb_array"
    envs: VectorEnv = shoal.make(source, num_envs, **options, **env_kwargs)
    return envs


def _can_render(source: Any) -> bool:
    """Whether the environments accept ``render_mode="rgb_array"``."""
    if is_atari(source):
        return True
    factory: Any = gymnasium.spec(source).entry_point if isinstance(source, str) else source
    if isinstance(factory, str):
        factory = load_env_creator(factory)
    modes = getattr(factory, "metadata", {}).get("render_modes", ())
    return "rgb_array" in modes and "render_mode" in signature(factory).parameters


def random_policy(envs: VectorEnv, seed: int | None) -> Policy:
    """Return a policy that cycles through a few batches of random actions.

    Args:
        envs: The vector.
        seed: The seed of the actions.
    """
    envs.action_space.seed(seed)
    count = max(2, min(_BATCHES, _MAX_ACTIONS // envs.num_envs))
    batches = cycle([envs.action_space.sample() for _ in range(count)])
    return lambda _: next(batches)


def run_loop(
    envs: VectorEnv,
    policy: Policy,
    *,
    seed: int | None,
    seconds: float | None,
    rate: float | None,
    on_step: Callable[[], None],
) -> None:
    """Reset a vector, and step it until the time is over.

    Args:
        envs: The vector, with autoreset.
        policy: Returns the actions.
        seed: The seed of the environments.
        seconds: When to stop; None for no limit.
        rate: The maximum number of batches per second.
        on_step: Called after each batch.
    """
    observations, _ = envs.reset(seed=seed)
    now = start = time.perf_counter()
    while seconds is None or now - start < seconds:
        due = now if rate is None else now + 1 / rate
        observations, *_ = envs.step(policy(observations))
        on_step()
        now = time.perf_counter()
        if now < due:
            time.sleep(due - now)
            now = due
