"""A drop-in replacement for ``gymnasium.vector.AsyncVectorEnv``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Protocol

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import logger
from gymnasium.error import AlreadyPendingCallError, ClosedEnvironmentError, NoAsyncCallError
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import create_shared_memory

from shoal._spaces import Layout, ObservationMode
from shoal.errors import (
    ReceiveTimeoutError,
    ResetMaskError,
    VectorFailedError,
)
from shoal.pools import Pool
from shoal.pools._environments import Called, EnvFactory
from shoal.pools._processes import isolated_pool
from shoal.pools._processes.custom_worker_pool import CustomWorkerPool
from shoal.pools._processes.error_packing import RemoteTraceback
from shoal.pools._processes.process_start import StartMethod
from shoal.pools._worker_calls import PendingCall
from shoal.vector._infos import format_infos
from shoal.vector._pool_vector_env import Arrays, VectorEnv
from shoal.vector._reset_mask import split_reset_mask
from shoal.vector._seeding import Seed, slot_seeds

__all__ = ["AsyncState", "AsyncVectorEnv"]

_log = logging.getLogger("shoal")

Step = tuple[Any, Arrays, Arrays, Arrays, Any]


class AsyncState(Enum):
    """The pending call of an asynchronous vector."""

    DEFAULT = "default"
    WAITING_RESET = "reset"
    WAITING_STEP = "step"
    WAITING_CALL = "call"


class AsyncPool(Pool, Protocol):
    """A pool with asynchronous calls."""

    errors: list[tuple[int, BaseException]]

    def begin_call(
        self, what: Called, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> PendingCall:
        """Start to call every environment."""

    def end_call(self, call: PendingCall, timeout: float | None = None) -> list[Any]:
        """Wait for the call, and return its results."""

    def abandon_call(self, call: PendingCall) -> None:
        """Abandon a call."""


# Gymnasium's class is a direct base because some libraries look only at the direct bases.
class AsyncVectorEnv(VectorEnv, gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """Steps environments in worker processes; takes the arguments of Gymnasium's class.

    Up to eight environments get a process each. More environments share as many processes as there
    are cores, but at least eight. No environment runs in the calling process.

    After a timeout, the next call first waits for the late results and discards them. After an
    error of an environment, every call but ``close`` raises
    :class:`shoal.errors.VectorFailedError`.

    Args:
        env_fns: Functions that make the environments.
        shared_memory: Observations are always shared. If True, observation spaces of a type that
            Gymnasium cannot share are refused, as in Gymnasium.
        copy: Whether ``reset`` and ``step`` return new arrays. If False, they return views that
            stay valid until the batch after next.
        context: How processes are started: None for new interpreters (or forks, if the functions
            cannot be pickled), or a start method of :mod:`multiprocessing`.
        daemon: Ignored. Workers never outlive the caller, and may have child processes.
        worker: A function with Gymnasium's arguments and messages that replaces the worker. Each
            environment then gets a process.
        observation_mode: ``"same"``, ``"different"`` for spaces that differ in their bounds, or a
            pair (batched observation space, single observation space).
        autoreset_mode: When a slot whose episode has ended is reset.
        max_concurrency: Maximum number of environments that are stepped at the same time.

    Example:
        >>> import gymnasium as gym
        >>> envs = AsyncVectorEnv([
        ...     lambda: gym.make("Pendulum-v1", g=9.81),
        ...     lambda: gym.make("Pendulum-v1", g=1.62),
        ... ])
        >>> envs
        AsyncVectorEnv(num_envs=2)
        >>> observations, infos = envs.reset(seed=42)
        >>> envs.step_async(envs.action_space.sample())
        >>> observations, rewards, terminated, truncated, infos = envs.step_wait(timeout=60)
        >>> envs.close()
    """

    _async_pool: AsyncPool

    def __init__(
        self,
        env_fns: Sequence[EnvFactory],
        shared_memory: bool = True,
        copy: bool = True,
        context: StartMethod | None = None,
        daemon: bool = True,
        worker: Callable[..., None] | None = None,
        observation_mode: ObservationMode = "same",
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        max_concurrency: int | None = None,
    ) -> None:
        self.env_fns = list(env_fns)
        self.shared_memory = shared_memory
        self.copy = copy
        self.context = context
        self.daemon = daemon
        self.worker = worker
        self.observation_mode = observation_mode
        self.max_concurrency = _checked_concurrency(max_concurrency)
        mode = AutoresetMode(autoreset_mode)
        self._state = AsyncState.DEFAULT
        self._failure: BaseException | None = None
        self._pending_call: PendingCall | None = None
        self._reset_slots: npt.NDArray[np.int64] | None = None
        if worker is not None:
            pool: AsyncPool = CustomWorkerPool(
                self.env_fns,
                worker,
                shared_memory=shared_memory,
                copy=copy,
                context=context,
                daemon=daemon,
                observation_mode=observation_mode,
                autoreset_mode=mode,
                max_concurrency=self.max_concurrency,
            )
        else:
            pool = isolated_pool(
                self.env_fns,
                context,
                workers=self.max_concurrency,
                observation_mode=observation_mode,
                autoreset_mode=mode,
                copy=copy,
            )
        self._async_pool = pool
        super().__init__(pool)
        if shared_memory:
            self._check_shareable()

    def _check_shareable(self) -> None:
        """Refuse observation spaces for which Gymnasium has no shared memory."""
        unsupported = create_shared_memory.dispatch(object)
        for leaf in Layout.of(self.single_observation_space).objects:
            if create_shared_memory.dispatch(type(leaf.space)) is unsupported:
                self.close(terminate=True)
                raise ValueError(
                    f"Gymnasium has no shared memory for the observation space {leaf.space}: use "
                    "shared_memory=False"
                )

    # Resets

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset all slots, or those that ``options["reset_mask"]`` selects."""
        self.reset_async(seed, options)
        return self.reset_wait()

    def reset_async(self, seed: Seed = None, options: dict[str, Any] | None = None) -> None:
        """Start to reset; :meth:`reset_wait` returns the results."""
        self._check_ready("reset_async")
        mask, options = split_reset_mask(options, self.num_envs)
        seeds = slot_seeds(seed, self.num_envs, self._seeding)
        if mask is not None and not self._has_observations and not mask.all():
            raise ResetMaskError(
                f"slot {np.argmin(mask)} has never been reset: the first reset must include it"
            )
        self._reset_slots = None if mask is None else np.flatnonzero(mask)
        if mask is not None:
            seeds = [seeds[slot] for slot in np.flatnonzero(mask)]
        self._drain()
        self._pool.reset(self._reset_slots, seeds, options)
        self._state = AsyncState.WAITING_RESET

    def reset_wait(self, timeout: float | None = None) -> tuple[Any, Any]:
        """Wait at most ``timeout`` seconds for the resets, and return observations and infos."""
        self._check_waiting(AsyncState.WAITING_RESET)
        batch = self._finish(lambda: self._pool.recv(timeout=timeout), timeout)
        self._has_observations = True
        slots = self._reset_slots
        if slots is None:
            return batch.observations, self._format_infos(batch)
        raw = batch.raw_infos
        if raw is not None:
            raw = [(int(slots[row]), info) for row, info in raw[0]], None
        return self._pool.latest(), format_infos(raw, self.num_envs, self._info_format)

    # Steps

    def step(self, actions: Any) -> Step:
        """Step every slot, and return the results in slot order."""
        self.step_async(actions)
        return self.step_wait()

    def step_async(self, actions: Any) -> None:
        """Start to step; :meth:`step_wait` returns the results."""
        self._check_ready("step_async")
        self._drain()
        self._pool.begin_step(actions)
        self._state = AsyncState.WAITING_STEP

    def step_wait(self, timeout: float | None = None) -> Step:
        """Wait at most ``timeout`` seconds for the steps, and return their results."""
        self._check_waiting(AsyncState.WAITING_STEP)
        *batch, raw = self._finish(lambda: self._pool.end_step(timeout), timeout)
        self._has_observations = True
        observations, rewards, terminated, truncated = batch
        infos = format_infos(raw, self.num_envs, self._info_format)
        return observations, rewards, terminated, truncated, infos

    # Calls

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute."""
        self.call_async(name, *args, **kwargs)
        return self.call_wait()

    def call_async(self, name: str, /, *args: Any, **kwargs: Any) -> None:
        """Start to call each environment; :meth:`call_wait` returns the results."""
        self._check_ready("call_async")
        if name in ("reset", "step", "close", "_setattr", "_check_spaces"):
            raise ValueError(
                f"Trying to call function `{name}` with `call`, use `{name}` directly instead."
            )
        self._drain()
        self._pending_call = self._async_pool.begin_call(name, args, kwargs)
        self._state = AsyncState.WAITING_CALL

    def call_wait(self, timeout: float | None = None) -> tuple[Any, ...]:
        """Wait at most ``timeout`` seconds for the calls, and return a result for each slot."""
        self._check_waiting(AsyncState.WAITING_CALL)
        call = self._pending_call
        assert call is not None, "WAITING_CALL implies a pending call"
        try:
            return tuple(self._finish(lambda: self._async_pool.end_call(call, timeout), timeout))
        except ReceiveTimeoutError:
            self._async_pool.abandon_call(call)
            raise

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: one value for all, or a list or tuple of values."""
        self._check_ready("set_attr")
        super().set_attr(name, values)

    # State

    def _check_ready(self, method: str) -> None:
        self._check_running()
        if self._state is not AsyncState.DEFAULT:
            raise AlreadyPendingCallError(
                f"Calling `{method}` while waiting for a pending call to `{self._state.value}` to "
                "complete",
                self._state.value,
            )

    def _check_waiting(self, state: AsyncState) -> None:
        self._check_running()
        if self._state is not state:
            raise NoAsyncCallError(
                f"Calling `{state.value}_wait` without any prior call to `{state.value}_async`.",
                state.value,
            )

    def _check_running(self) -> None:
        if self.closed:
            raise ClosedEnvironmentError(
                f"Trying to operate on `{type(self).__name__}`, after a call to `close()`."
            )
        if self._failure is not None:
            raise VectorFailedError(
                f"the vector has failed before ({type(self._failure).__name__}: {self._failure}): "
                "close it and make a new one"
            ) from self._failure

    def _finish(self, wait: Callable[[], Any], timeout: float | None) -> Any:
        """Finish the pending call by ``wait``; log errors of environments as Gymnasium does."""
        state, self._state = self._state, AsyncState.DEFAULT
        self._async_pool.errors = []
        try:
            return wait()
        except ReceiveTimeoutError as error:
            raise ReceiveTimeoutError(
                f"The call to `{state.value}_wait` has timed out after {timeout} second(s)."
            ) from error
        except KeyboardInterrupt:
            if state is AsyncState.WAITING_CALL or self._pool.in_flight:
                self._state = state
            raise
        except BaseException as error:
            self._failure = error
            for slot, env_error in self._async_pool.errors:
                logger.error(f"Received the following error from Worker-{slot} - Shutting it down")
                logger.error("%s", _traceback_of(env_error))
            if self._async_pool.errors:
                logger.error("Raising the last exception back to the main process.")
            raise

    def _drain(self) -> None:
        """Wait for the late results of a call that timed out, and discard them."""
        try:
            self._pool.drop()
        except Exception as error:
            self._failure = error
            self._check_running()

    def close_extras(self, timeout: float | None = None, terminate: bool = False) -> None:
        """Close every environment and end the workers; never raises.

        Args:
            timeout: Seconds after which workers that have not ended are killed.
            terminate: Kill them at once.
        """
        if not hasattr(self, "_pool"):
            return  # the constructor failed
        if self._state is not AsyncState.DEFAULT:
            logger.warn(
                f"Calling `close` while waiting for a pending call to `{self._state.value}` to "
                "complete."
            )
        try:
            self._pool.close(terminate=terminate, timeout=timeout)
        except Exception as error:
            notes = "; ".join(getattr(error, "__notes__", ()))
            _log.warning("closing an environment failed: %r (%s)", error, notes)


def _checked_concurrency(limit: Any) -> int | None:
    if limit is None:
        return None
    if not isinstance(limit, int | np.integer):
        raise ValueError(f"`max_concurrency` must be an integer or None, got {type(limit)}.")
    if limit < 1:
        raise ValueError(f"`max_concurrency` must be a positive or None, got {limit}.")
    return int(limit)


def _traceback_of(error: BaseException) -> str:
    cause = error.__cause__
    return str(cause.args[0]) if isinstance(cause, RemoteTraceback) else repr(error)
