"""Base classes of the vector wrappers."""

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
"""An index of slots: all of them, or a mask."""


def autoreset_mode_of(env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> AutoresetMode:
    """Return the autoreset mode in a vector's metadata, ``NEXT_STEP`` with a warning by default."""
    if "autoreset_mode" not in env.metadata:
        warn(
            f"Vector environment ({env}) is missing `autoreset_mode` metadata key: "
            "assuming AutoresetMode.NEXT_STEP."
        )
        return AutoresetMode.NEXT_STEP
    mode = env.metadata["autoreset_mode"]
    if not isinstance(mode, AutoresetMode):
        raise TypeError(
            f"Expected env.metadata['autoreset_mode'] to be an AutoresetMode, got {type(mode)}"
        )
    return mode


def batch_of(space: Space[Any], rows: Sequence[Any]) -> Any:
    """Concatenate elements of a space to a new batch."""
    batch: Any = create_empty_array(space, len(rows))
    return concatenate(space, rows, batch)


class VectorWrapper(gymnasium.vector.VectorWrapper):
    """Wraps a vector and forwards everything that it does not change.

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
                f"{type(self.env).__name__}, wrapped by {type(self).__name__}, has no method "
                f"{name!r}"
            )
        return method

    def _reset_slots(
        self, seed: Seed, options: dict[str, Any] | None
    ) -> tuple[SlotIndex, Any, Any]:
        """Reset the wrapped vector; returns the slots that were reset, observations and infos."""
        mask, _ = split_reset_mask(options, self.num_envs)
        # A copy, since some vectors remove the mask from the dict.
        options = None if options is None else dict(options)
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        return slice(None) if mask is None else mask, observations, infos

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        """Do not close the wrapped vector, as Gymnasium before 1.3 would."""


class VectorObservationWrapper(VectorWrapper, gymnasium.vector.VectorObservationWrapper):
    """Base class of wrappers that transform observations; a subclass defines :meth:`observations`.

    In the mode SAME_STEP, ``final_obs`` in the infos is transformed as well.

    Args:
        env: The vector to wrap.
    """

    def __init__(self, env: gymnasium.vector.VectorEnv[Any, Any, Any]) -> None:
        # Skips the constructor of Gymnasium's class of the same name, which refuses SAME_STEP.
        gymnasium.vector.VectorWrapper.__init__(self, env)
        self.autoreset_mode = autoreset_mode_of(env)

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and transform its observations."""
        _, observations, infos = self._reset_slots(seed, options)
        return self.observations(observations), infos

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and transform its observations."""
        raw, rewards, terminated, truncated, infos = self.env.step(actions)
        observations = self.observations(raw)
        if self.autoreset_mode is AutoresetMode.SAME_STEP:
            infos = replace_final_observations(
                infos, lambda finals: self.final_observations(finals, raw)
            )
        return observations, rewards, terminated, truncated, infos

    def observations(self, observations: Any) -> Any:
        """Return the transformed observations of all slots, without modifying the argument."""
        raise NotImplementedError

    def final_observations(self, finals: Finals, observations: Any) -> Finals:
        """Return the transformed final observations.

        By default they replace the rows of their slots in ``observations``, and
        :meth:`observations` is called a second time with that batch. Override this method if
        :meth:`observations` has side effects.

        Args:
            finals: The last observation of each slot whose episode has ended.
            observations: The observations that the wrapped vector returned in the same step.
        """
        rows = list(iterate(self.env.observation_space, observations))
        for slot, final in finals.items():
            rows[slot] = final
        batch = batch_of(self.env.single_observation_space, rows)
        transformed = list(iterate(self.observation_space, self.observations(batch)))
        return {slot: transformed[slot] for slot in finals}


class VectorActionWrapper(VectorWrapper, gymnasium.vector.VectorActionWrapper):
    """Base class of wrappers that transform actions; a subclass defines :meth:`actions`."""

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector with transformed actions."""
        return self.env.step(self.actions(actions))

    def actions(self, actions: Any) -> Any:
        """Return the actions for the wrapped vector, without modifying the argument."""
        raise NotImplementedError


class VectorRewardWrapper(VectorWrapper, gymnasium.vector.VectorRewardWrapper):
    """Base class of wrappers that transform rewards; a subclass defines :meth:`rewards`."""

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and transform its rewards."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        return observations, self.rewards(rewards), terminated, truncated, infos

    def rewards(self, rewards: Any) -> Any:
        """Return the transformed rewards of all slots, without modifying the argument."""
        raise NotImplementedError
