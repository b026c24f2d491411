"""What all vector wrappers have in common, and the bases to derive new ones from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import gymnasium.vector
import numpy as np
import numpy.typing as npt
from gymnasium import Space
from gymnasium.logger import warn
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import concatenate, create_empty_array, iterate

from shoal.vector._reset_mask import split_reset_mask
from shoal.vector._seeding import Seed
from shoal.vector.wrappers._final_observations import Finals, replace_final_observations

__all__ = [
    "Arrays",
    "SlotIndex",
    "Step",
    "VectorActionWrapper",
    "VectorObservationWrapper",
    "VectorRewardWrapper",
    "VectorWrapper",
    "autoreset_mode_of",
    "batch_of",
]

Arrays = npt.NDArray[Any]

Step = tuple[Any, Arrays, Arrays, Arrays, Any]
"""Observations, rewards, terminated, truncated and infos."""

SlotIndex = slice | npt.NDArray[np.bool_]
"""What selects slots in an array with a row for each: all of them, or those of a mask."""


def autoreset_mode_of(env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """How a vector resets its slots, as its metadata say; ``NEXT_STEP`` where they say nothing."""
    if "autoreset_mode" not in env.metadata:
        warn(
            f"Vector environment ({env}) is missing `autoreset_mode` metadata key: "
            "assuming that it resets a slot in the step after its episode has ended."
        )
        return AutoresetMode.NEXT_STEP
    mode = env.metadata["autoreset_mode"]
    if not isinstance(mode, AutoresetMode):
        raise TypeError(
            f"Expected env.metadata['autoreset_mode'] to be an AutoresetMode, got {type(mode)}"
        )
    return mode


def batch_of(space: Space[Any], rows: Sequence[Any]) -> Any:
    """A new batch of elements of a space."""
    batch: Any = create_empty_array(space, len(rows))
    return concatenate(space, rows, batch)


class VectorWrapper(gymnasium.vector.VectorWrapper):
    """A vector around another one, which hands on everything that it does not change.

    Args:
        env: The vector to wrap.

    Example:
        >>> import shoal
        >>> with VectorWrapper(shoal.make("CartPole-v1", num_envs=2, backend="inline")) as envs:
        ...     envs.set_attr("gravity", [9.81, 1.62])
        ...     envs.get_attr("gravity")
        (9.81, 1.62)
    """

    env: gymnasium.vector.VectorEnv[Any, Any, Any]

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Call a method of each environment, or read an attribute."""
        results: tuple[Any, ...] = self._method_of_env("call")(name, *args, **kwargs)
        return results

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """Read an attribute of each environment."""
        values: tuple[Any, ...] = self._method_of_env("get_attr")(name)
        return values

    def set_attr(self, name: str, values: Any) -> None:
        """Set an attribute of each environment: one value for all, or a list or tuple of values."""
        self._method_of_env("set_attr")(name, values)

    def _method_of_env(self, name: str) -> Callable[..., Any]:
        method: Callable[..., Any] | None = getattr(self.env, name, None)
        if method is None:
            raise AttributeError(
                f"{type(self.env).__name__}, which {type(self).__name__} wraps, has no method "
                f"{name!r}"
            )
        return method

    def _reset_slots(
        self, seed: Seed, options: dict[str, Any] | None
    ) -> tuple[SlotIndex, Any, Any]:
        """Reset the wrapped vector; returns which slots that meant, observations and infos."""
        mask, _ = split_reset_mask(options, self.num_envs)
        # Some vectors take the mask out of the dict that they are given.
        own_options = None if options is None else dict(options)
        observations, infos = self.env.reset(seed=seed, options=own_options)  # type: ignore[arg-type]
        return slice(None) if mask is None else mask, observations, infos

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Leave the wrapped vector as it is: Gymnasium before 1.3 would close it."""


class VectorObservationWrapper(VectorWrapper, gymnasium.vector.VectorObservationWrapper):
    """A wrapper that changes observations; to derive from it, define :meth:`observations`.

    Where slots are reset in the same step, ``final_obs`` in the infos is changed as well.

    Args:
        env: The vector to wrap.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        # Past the constructor of Gymnasium's class of this name, which refuses SAME_STEP.
        gymnasium.vector.VectorWrapper.__init__(self, env)
        self.autoreset_mode = autoreset_mode_of(env)

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and change its observations."""
        _, observations, infos = self._reset_slots(seed, options)
        return self.observations(observations), infos

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and change its observations."""
        raw, rewards, terminated, truncated, infos = self.env.step(actions)
        observations = self.observations(raw)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = replace_final_observations(
                infos, lambda finals: self.final_observations(finals, raw)
            )
        return observations, rewards, terminated, truncated, infos

    def observations(self, observations: Any) -> Any:
        """The observations of all slots, changed; what was given stays as it is."""
        raise NotImplementedError

    def final_observations(self, finals: Finals, observations: Any) -> Finals:
        """The observations that episodes ended with, changed.

        By default they take the place of their slots' rows in a batch for :meth:`observations`,
        which thus is called twice in such a step. Override this where that would not do.

        Args:
            finals: The last observation of each slot whose episode has ended.
            observations: What the wrapped vector has returned in the same step.
        """
        rows = list(iterate(self.env.observation_space, observations))
        for slot, final in finals.items():
            rows[slot] = final
        batch = batch_of(self.env.single_observation_space, rows)
        changed = list(iterate(self.observation_space, self.observations(batch)))
        return {slot: changed[slot] for slot in finals}


class VectorActionWrapper(VectorWrapper, gymnasium.vector.VectorActionWrapper):
    """A wrapper that changes actions; to derive from it, define :meth:`actions`."""

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector with changed actions."""
        return self.env.step(self.actions(actions))

    def actions(self, actions: Any) -> Any:
        """The actions for the wrapped vector; what was given stays as it is."""
        raise NotImplementedError


class VectorRewardWrapper(VectorWrapper, gymnasium.vector.VectorRewardWrapper):
    """A wrapper that changes rewards; to derive from it, define :meth:`rewards`."""

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and change its rewards."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, self.rewards(rewards), terminated, truncated, infos

    def rewards(self, rewards: Any) -> Any:
        """The rewards of all slots, changed; what was given stays as it is."""
        raise NotImplementedError
