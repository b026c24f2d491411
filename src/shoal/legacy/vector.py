"""OpenAI Gym's ``gym.vector``: ``step`` returns four values, infos are a tuple of dicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.vector import AutoresetMode

from shoal._types import FINAL_KEYS
from shoal.legacy._env import make_modern_env, old_done
from shoal.legacy._ids import current_id
from shoal.legacy._ids import make as make_env
from shoal.pools import Batch, InlinePool, Pool
from shoal.pools._env_calls import EnvironmentCalls
from shoal.pools._environments import EnvFactory, wrapped
from shoal.pools._processes import isolated_pool
from shoal.pools._processes.process_start import StartMethod
from shoal.vector._seeding import Seed, slot_seeds

__all__ = ["AsyncVectorEnv", "SyncVectorEnv", "VectorEnv", "make"]

Step = tuple[Any, npt.NDArray[np.float64], npt.NDArray[np.bool_], tuple[dict[str, Any], ...]]


class VectorEnv(EnvironmentCalls):
    """A vector of OpenAI Gym's interface on top of a pool.

    A slot whose episode ends is reset in the same step: the observation is the first of the next
    episode, and the final observation is in the info as ``terminal_observation``.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._seeds: list[int | None] | None = None
        self.num_envs = pool.num_envs
        self.metadata = pool.metadata
        self.single_observation_space: Space[Any] = pool.spaces.single_observation
        self.observation_space: Space[Any] = pool.spaces.observation
        self.single_action_space: Space[Any] = pool.spaces.single_action
        self.action_space: Space[Any] = pool.spaces.action
        self.closed = False

    def seed(self, seed: Seed = None) -> None:
        """Seed the next ``reset``: one integer for the whole vector, or one for each slot."""
        self._seeds = slot_seeds(seed, self.num_envs)

    def reset_async(self, seed: Seed = None) -> None:
        """Start to reset all slots."""
        if seed is not None:
            self.seed(seed)
        seeds, self._seeds = self._seeds, None
        self._pool.reset(None, seeds)

    def reset_wait(self, timeout: float | None = None) -> Any:
        """Wait for the resets, and return the observations."""
        return self._pool.recv(timeout=timeout).observations

    def reset(self, seed: Seed = None) -> Any:
        """Reset all slots, and return the observations."""
        self.reset_async(seed)
        return self.reset_wait()

    def step_async(self, actions: Any) -> None:
        """Start to step all slots."""
        self._pool.send(actions)

    def step_wait(self, timeout: float | None = None) -> Step:
        """Wait for the steps, and return (observations, rewards, dones, infos)."""
        batch = self._pool.recv(timeout=timeout)
        dones = batch.terminated | batch.truncated
        return batch.observations, batch.rewards, dones, _old_infos(batch)

    def step(self, actions: Any) -> Step:
        """Step all slots, and return (observations, rewards, dones, infos)."""
        self.step_async(actions)
        return self.step_wait()

    def close(self) -> None:
        """Close all environments."""
        self.closed = True
        self._pool.close()

    def _check_spaces(self, observation: Space[Any] | None, action: Space[Any] | None) -> None:
        """Close the vector and raise if the environments have other spaces."""
        for name, expected, actual in (
            ("observation", observation, self.single_observation_space),
            ("action", action, self.single_action_space),
        ):
            if expected is not None and expected != actual:
                self.close()
                raise RuntimeError(
                    f"the environments' {name} space is {actual}, expected {expected}"
                )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_envs})"


class SyncVectorEnv(VectorEnv):
    """Steps environments one after the other; takes the arguments of Gym's class."""

    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        copy: bool = True,
    ) -> None:
        pool = InlinePool(_factories(env_fns), autoreset_mode=AutoresetMode.SAME_STEP, copy=copy)
        super().__init__(pool)
        self._check_spaces(observation_space, action_space)


class AsyncVectorEnv(VectorEnv):
    """Steps environments in worker processes; takes the arguments of Gym's class.

    Args:
        env_fns: Functions that make the environments.
        observation_space: The expected observation space of the environments; None for any.
        action_space: The expected action space of the environments; None for any.
        shared_memory: Ignored, since observations are always shared.
        copy: Whether batches are new arrays. If False, they are views that stay valid until the
            batch after next.
        context: How processes are started: None for new interpreters (or forks, if the functions
            cannot be pickled), or a start method of :mod:`multiprocessing`.
        daemon: Ignored, since workers never outlive the caller.
        worker: Must be None. Gym's worker functions, which return four values, are not supported.
    """

    def __init__(
        self,
        env_fns: Iterable[Callable[[], Any]],
        observation_space: Space[Any] | None = None,
        action_space: Space[Any] | None = None,
        shared_memory: bool = True,  # noqa: ARG002
        copy: bool = True,
        context: StartMethod | None = None,
        daemon: bool = True,  # noqa: ARG002
        worker: Callable[..., None] | None = None,
    ) -> None:
        if worker is not None:
            raise NotImplementedError(
                "worker functions of OpenAI Gym are not supported: use shoal.vector.AsyncVectorEnv "
                "with one of Gymnasium"
            )
        pool = isolated_pool(
            _factories(env_fns), context, autoreset_mode=AutoresetMode.SAME_STEP, copy=copy
        )
        super().__init__(pool)
        self._check_spaces(observation_space, action_space)


def _factories(env_fns: Iterable[Callable[[], Any]]) -> list[EnvFactory]:
    return [partial(make_modern_env, env_fn) for env_fn in env_fns]


def make(
    env_id: str,
    num_envs: int = 1,
    asynchronous: bool = True,
    wrappers: Callable[[Any], Any] | Sequence[Callable[[Any], Any]] | None = None,
    context: StartMethod | None = None,
    **kwargs: Any,
) -> VectorEnv:
    """Make a vector of copies of a registered environment.

    ``wrappers`` is one function, or a list of functions, that wraps each environment.
    """
    chain = [wrappers] if callable(wrappers) else list(wrappers or ())

    env_id = current_id(env_id, stacklevel=3)
    factories = [partial(wrapped, partial(make_env, env_id, **kwargs), chain)] * num_envs
    if asynchronous:
        return AsyncVectorEnv(factories, context=context)
    return SyncVectorEnv(factories)


def _old_infos(batch: Batch) -> tuple[dict[str, Any], ...]:
    infos: list[dict[str, Any]] = [{} for _ in batch.slots]
    events = batch.raw_infos[0] if batch.raw_infos is not None else []
    for row, info in events:
        if info.keys() == FINAL_KEYS:
            _, time_limit_info = old_done(bool(batch.terminated[row]), bool(batch.truncated[row]))
            final_obs = {"terminal_observation": info["final_obs"]}
            infos[row] = {**info["final_info"], **final_obs, **time_limit_info}
        elif "terminal_observation" not in infos[row]:
            # Otherwise these are the infos of the following reset, which Gym does not report.
            infos[row] = info
    return tuple(infos)
