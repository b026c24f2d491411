"""Conversions between Gymnasium's vector interface and Stable-Baselines3's ``VecEnv``."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space, iterate

from shoal._types import Event
from shoal.errors import ResetMaskError
from shoal.sb3._infos import TERMINAL_OBSERVATION, TRUNCATED
from shoal.sb3._pool_vec_env import PoolVecEnv
from shoal.sb3.base_vec_env import VecEnv
from shoal.vector._infos import format_infos
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._reset_mask import split_reset_mask
from shoal.vector._seeding import Seed, slot_seeds
from shoal.vector._vector_env_pool import VectorEnvPool

__all__ = ["as_vec_env", "as_vector_env"]

Arrays = npt.NDArray[Any]
Info = dict[str, Any]


def as_vec_env(envs: gymnasium.vector.VectorEnv[Any, Any, Any]) -> VecEnv:
    """Convert a Gymnasium vector to a Stable-Baselines3 ``VecEnv``.

    The vector is one of Shoal, such as those of :func:`shoal.make`, or any other
    ``gymnasium.vector.VectorEnv``, wrapped or not. Closing either closes both.

    Environments are reset in the step in which their episode ends, whatever the vector's autoreset
    mode is. If that mode is not SAME_STEP, the vector and its wrappers must support ``reset_mask``,
    which Gymnasium's wrappers do not. Episodes that the vector reports by ``statistics=True`` are
    in the infos as Stable-Baselines3 expects them.

    Example:
        >>> import shoal
        >>> vec_env = as_vec_env(shoal.make("CartPole-v1", num_envs=2, statistics=True))
        >>> vec_env.reset().shape
        (2, 4)
        >>> vec_env.close()
    """
    if not isinstance(envs, gymnasium.vector.VectorEnv):
        raise TypeError(f"expected a gymnasium.vector.VectorEnv, got {type(envs).__name__}")
    return _VecEnvOfVector(envs)


def as_vector_env(vec_env: VecEnv) -> gymnasium.vector.VectorEnv[Any, Any, Arrays]:
    """Convert a ``VecEnv`` of either library, wrapped or not, to a Gymnasium vector.

    Its autoreset mode is SAME_STEP. Closing either closes both.

    Example:
        >>> from shoal.sb3 import make_vec_env
        >>> envs = as_vector_env(make_vec_env("CartPole-v1", n_envs=2))
        >>> observations, infos = envs.reset(seed=1)
        >>> observations, rewards, terminated, truncated, infos = envs.step(np.array([0, 1]))
        >>> envs.close()
    """
    if not isinstance(vec_env, VecEnv):
        raise TypeError(f"expected a VecEnv, got {type(vec_env).__name__}")
    return _VectorOfVecEnv(vec_env)


class _VecEnvOfVector(PoolVecEnv):
    """A ``VecEnv`` of a vector that the caller owns and may still be using."""

    _owns_pool = False

    def __init__(self, envs: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        self.vector = envs  # keeps the vector alive, which abandons its pool when deleted
        super().__init__(envs.pool if isinstance(envs, VectorEnv) else VectorEnvPool(envs))

    def close(self) -> None:
        self.vector.close()
        self._pool.close()


class _VectorOfVecEnv(gymnasium.vector.VectorEnv[Any, Any, Arrays]):
    """A Gymnasium vector of a ``VecEnv``."""

    def __init__(self, vec_env: VecEnv) -> None:
        self.vec_env = vec_env
        self.num_envs = vec_env.num_envs
        self.metadata = {**vec_env.metadata, "autoreset_mode": AutoresetMode.SAME_STEP}
        self.render_mode = vec_env.render_mode
        self.single_observation_space = vec_env.observation_space
        self.single_action_space = vec_env.action_space
        self.observation_space = batch_space(vec_env.observation_space, self.num_envs)
        self.action_space = batch_space(vec_env.action_space, self.num_envs)

    def reset(self, *, seed: Seed = None, options: Info | None = None) -> tuple[Any, Info]:
        """Reset all slots; a mask must select all of them."""
        mask, options = split_reset_mask(options, self.num_envs)
        if mask is not None and not mask.all():
            raise ResetMaskError("a VecEnv can only reset all of its environments, not some")
        seeds = slot_seeds(seed, self.num_envs, "adjacent")
        if isinstance(seed, int | np.integer):
            self.vec_env.seed(int(seed))
        elif seed is not None:
            self.vec_env.unwrapped._seeds = seeds
        self.vec_env.set_options(options)
        observations = self.vec_env.reset()
        return observations, self._batch_infos(enumerate(self._reset_infos))

    def step(self, actions: Any) -> tuple[Any, Arrays, Arrays, Arrays, Info]:
        """Step every slot, and reset those whose episode ends."""
        if isinstance(self.single_action_space, spaces.Dict | spaces.Tuple):
            actions = list(iterate(self.action_space, actions))
        observations, rewards, done_flags, infos = self.vec_env.step(actions)
        dones = np.asarray(done_flags, np.bool_)
        truncated = dones & [bool(info.get(TRUNCATED, False)) for info in infos]
        events: list[Event] = []
        for slot, info in enumerate(infos):
            env_info = {key: value for key, value in info.items() if key != TRUNCATED}
            if not dones[slot]:
                events.append((slot, env_info))
                continue
            final = env_info.pop(TERMINAL_OBSERVATION, None)
            events.append((slot, {"final_obs": final, "final_info": env_info}))
            events.append((slot, self._reset_infos[slot]))
        rewards = np.asarray(rewards, np.float64)
        return observations, rewards, dones & ~truncated, truncated, self._batch_infos(events)

    @property
    def _reset_infos(self) -> list[Info]:
        # Those of the innermost vector, since Stable-Baselines3's wrappers do not update theirs.
        return self.vec_env.unwrapped.reset_infos

    def _batch_infos(self, events: Any) -> Info:
        non_empty = [(slot, info) for slot, info in events if info]
        batched: Info = format_infos((non_empty, None), self.num_envs, "dict") if non_empty else {}
        return batched

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute."""
        values = self.vec_env.get_attr(name) if not args and not kwargs else [None]
        if args or kwargs or callable(values[0]):
            return tuple(self.vec_env.env_method(name, *args, **kwargs))
        return tuple(values)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each environment."""
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: one value for all, or a list or tuple of values."""
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"got {len(values)} values for {self.num_envs} environments")
        for slot, value in enumerate(values):
            self.vec_env.set_attr(name, value, indices=slot)

    def render(self) -> tuple[Any, ...]:
        """Render each environment."""
        return tuple(self.vec_env.get_images())

    def close_extras(self, **_: Any) -> None:
        """Close every environment; ``close`` calls this once."""
        self.vec_env.close()
