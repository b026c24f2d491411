"""The Stable-Baselines3 frontend: any pool as a ``VecEnv``."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from copy import deepcopy
from operator import index
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode
from stable_baselines3.common.monitor import Monitor

from shoal.pools import Pool
from shoal.pools._env_access import (
    call_method,
    class_name,
    get_attribute,
    has_attribute,
    is_wrapped,
    set_attribute,
)
from shoal.sb3._actions import batched_actions
from shoal.sb3._infos import infos_by_slot, vec_env_infos
from shoal.sb3._same_step_reset import reset_finished_slots
from shoal.sb3.base_vec_env import (
    CounterpartMeta,
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
)

__all__ = ["PoolVecEnv"]


class PoolVecEnv(VecEnv, metaclass=CounterpartMeta):
    """A Stable-Baselines3 ``VecEnv`` on top of a pool.

    An environment whose episode has ended is reset in the same step; its info then contains
    ``terminal_observation``. Observations, rewards (float32) and dones are new arrays.

    Args:
        pool: The pool that steps the environments. The vector owns and closes it.
    """

    reset_infos: list[dict[str, Any]]

    _owns_pool = True
    _previous: VecEnvObs | None = None  # observations before the step, if the pool restarts slots

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        try:
            super().__init__(
                pool.num_envs, pool.spaces.single_observation, pool.spaces.single_action
            )
        except BaseException:
            if self._owns_pool:
                pool.close()
            raise

    @property
    def pool(self) -> Pool:
        """The pool that steps the environments; it can be replaced by a pool that wraps it."""
        return self._pool

    @pool.setter
    def pool(self, pool: Pool) -> None:
        self._pool = pool

    def reset(self) -> VecEnvObs:
        """Reset every environment; a pending step is discarded.

        The seeds and options set before are used once.
        """
        pool = self._pool
        if len(self._options) != self.num_envs:
            raise ValueError(
                f"got options for {len(self._options)} of {self.num_envs} environments"
            )
        pool.drop()
        options = [slot_options or None for slot_options in self._options]
        if all(slot_options is options[0] for slot_options in options):
            pool.reset(None, self._seeds, options[0])
        else:
            for slot, (seed, slot_options) in enumerate(zip(self._seeds, options, strict=True)):
                pool.reset([slot], [seed], slot_options)
        batch = pool.recv()
        self.reset_infos = infos_by_slot(batch.raw_infos, self.num_envs)
        self._reset_seeds()
        self._reset_options()
        return self._owned(batch.observations)

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Start to step every environment with its action; ``step_wait`` returns the results.

        Raises:
            InvalidActionError: The number of actions is wrong, or one is not in the action space.
            AlreadyPendingCallError: The previous step is still pending.
        """
        pool = self._pool
        pool.begin_step(batched_actions(self.action_space, actions, self.num_envs))
        if pool.restarts and pool.autoreset_mode is not AutoresetMode.SAME_STEP:
            self._previous = pool.latest()

    def step_wait(self) -> VecEnvStepReturn:
        """Wait for the pending step, and return its observations, rewards, dones and infos."""
        pool = self._pool
        results = pool.end_step()
        if pool.autoreset_mode is not AutoresetMode.SAME_STEP:
            results = reset_finished_slots(pool, results, self._previous)
        observations, rewards, terminated, truncated, raw = results
        infos = vec_env_infos(raw, terminated, truncated, self.reset_infos)
        return (
            self._owned(observations),
            rewards.astype(np.float32),
            terminated | truncated,
            infos,
        )

    def _owned(self, observations: VecEnvObs) -> VecEnvObs:
        """Copy the observations unless the pool returns new arrays."""
        return observations if self._pool.copy else deepcopy(observations)

    def close(self) -> None:
        """Close every environment and end the workers; a second call does nothing."""
        self._pool.close()

    def __del__(self) -> None:
        pool = vars(self).get("_pool")
        # At interpreter shutdown, modules that an environment needs to close may be gone.
        if pool is not None and self._owns_pool and not sys.is_finalizing():
            pool.abandon()

    def get_images(self) -> Sequence[npt.NDArray[Any] | None]:
        """Render each environment; requires ``render_mode="rgb_array"``."""
        if self.render_mode != "rgb_array":
            warnings.warn(
                f"The render mode is {self.render_mode}, but this method assumes it is `rgb_array` "
                "to obtain images.",
                stacklevel=2,
            )
            return [None] * self.num_envs
        return self._pool.call("render")

    def has_attr(self, attr_name: str) -> bool:
        """Whether every environment, or a wrapper around it, has this attribute."""
        return all(self._pool.call(has_attribute, attr_name))

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Read an attribute of each environment, or of a wrapper around it."""
        return self._call_each(indices, get_attribute, attr_name)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of each environment, on the environment or wrapper that has it.

        Raises:
            AttributeError: Neither has it, and there is a wrapper other than ``Monitor``, on which
                a new attribute would have no effect.
        """
        self._call_each(indices, set_attribute, attr_name, value, class_name(Monitor))

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of each environment, or of a wrapper around it."""
        return self._call_each(indices, call_method, method_name, method_args, method_kwargs)

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """Whether each environment has a wrapper of this class."""
        return self._call_each(indices, is_wrapped, class_name(wrapper_class))

    def _call_each(self, indices: VecEnvIndices, function: Any, *args: Any) -> list[Any]:
        slots = [self._slot(number) for number in self._get_indices(indices)]
        if len(set(slots)) == len(slots):
            return self._pool.call(function, *args, slots=slots)
        return [self._pool.call(function, *args, slots=[slot])[0] for slot in slots]

    def _get_indices(self, indices: VecEnvIndices) -> list[int]:
        if indices is None:
            return list(range(self.num_envs))
        if isinstance(indices, int | np.integer):
            return [int(indices)]
        return [index(number) for number in indices]

    def _slot(self, number: int) -> int:
        if not -self.num_envs <= number < self.num_envs:
            raise IndexError(
                f"index {number} is out of range: there are {self.num_envs} environments"
            )
        return number % self.num_envs
