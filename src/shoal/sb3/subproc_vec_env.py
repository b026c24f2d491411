"""A drop-in replacement for Stable-Baselines3's ``SubprocVecEnv``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.vec_env import subproc_vec_env as original

from shoal.legacy._openai_gym import gymnasium_env
from shoal.pools._processes import ProcessPool, lenient_pool
from shoal.pools._processes.process_start import START_METHODS, StartMethod
from shoal.pools._restart_policy import OnCrash
from shoal.sb3._pool_vec_env import PoolVecEnv
from shoal.sb3.base_vec_env import counterpart_of

__all__ = ["SubprocVecEnv"]


@counterpart_of(original.SubprocVecEnv)
class SubprocVecEnv(PoolVecEnv):
    """Steps environments in worker processes, one per core.

    The calling process steps the last environments itself while it waits, unless
    ``caller_works=False``, ``on_crash="restart"`` or ``step_timeout`` is given.

    Args:
        env_fns: Functions that make the environments.
        start_method: How processes are started: None for new interpreters (or forks, if the
            functions cannot be pickled), or a start method of :mod:`multiprocessing`.
        workers: Number of processes; by default enough to keep all cores busy.
        caller_works: Whether the calling process steps environments, too.
        on_crash: What happens when a worker dies: an error (``"raise"``), or a new worker
            (``"restart"``), whose environments come back reset, truncated and with ``crashed`` in
            their infos.
        step_timeout: Seconds after which an environment that does not respond counts as crashed.

    Example:
        >>> import gymnasium as gym
        >>> vec_env = SubprocVecEnv([lambda: gym.make("Pendulum-v1")] * 2)
        >>> vec_env.reset().shape
        (2, 3)
        >>> vec_env.env_method("get_wrapper_attr", "g", indices=[1])
        [10.0]
        >>> vec_env.close()
    """

    _pool: ProcessPool

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        start_method: StartMethod | None = None,
        *,
        workers: int | None = None,
        caller_works: bool | None = None,
        on_crash: OnCrash = "raise",
        step_timeout: float | None = None,
    ) -> None:
        if start_method is not None and start_method not in START_METHODS:
            raise ValueError(
                f"cannot find context for {start_method!r}: expected one of {START_METHODS}"
            )
        if caller_works is None:
            caller_works = on_crash == "raise" and step_timeout is None
        super().__init__(
            lenient_pool(
                [partial(gymnasium_env, env_fn) for env_fn in env_fns],
                start_method,
                autoreset_mode=AutoresetMode.SAME_STEP,
                workers=workers,
                caller_works=caller_works,
                on_crash=on_crash,
                step_timeout=step_timeout,
            )
        )
        self._closed = False

    @property
    def waiting(self) -> bool:
        """Whether a step is pending."""
        return self._pool.in_flight > 0

    @property
    def closed(self) -> bool:
        """Whether the environments are closed."""
        return self._closed

    def close(self) -> None:
        """Close every environment and end the workers; a second call does nothing."""
        self._closed = True
        super().close()
