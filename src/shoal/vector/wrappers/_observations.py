"""Wrappers that transform observations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import gymnasium
import gymnasium.vector
import numpy as np
import numpy.typing as npt
from gymnasium import Space, spaces
from gymnasium.logger import warn
from gymnasium.vector.utils import batch_space, iterate
from gymnasium.wrappers import transform_observation

from shoal.vector.wrappers._base import Arrays, VectorObservationWrapper, batch_of
from shoal.vector.wrappers._final_observations import Finals

__all__ = [
    "DtypeObservation",
    "FilterObservation",
    "FlattenObservation",
    "GrayscaleObservation",
    "RescaleObservation",
    "ReshapeObservation",
    "ResizeObservation",
    "TransformObservation",
    "VectorizeTransformObservation",
]

_RED, _GREEN, _BLUE = np.float64(0.2125), np.float64(0.7154), np.float64(0.0721)

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]


class TransformObservation(VectorObservationWrapper):
    """Transforms the batch of observations with a function.

    In the mode SAME_STEP, the function is called a second time with a batch in which final
    observations replace the rows of their slots.

    Args:
        env: The vector to wrap.
        func: Takes the observations of all slots, and returns the transformed ones.
        observation_space: The space of the transformed observations. By default the batch of
            ``single_observation_space``, or the wrapped vector's space if that is not given either.
        single_observation_space: The space of the transformed observations, for one slot.

    Example:
        >>> import shoal
        >>> envs = shoal.make("CartPole-v1", num_envs=2, backend="inline")
        >>> with TransformObservation(envs, lambda observations: observations.round(2)) as envs:
        ...     envs.reset(seed=42)[0]
        array([[ 0.03, -0.01,  0.04,  0.02],
               [ 0.02, -0.05, -0.05,  0.03]], dtype=float32)
    """

    def __init__(
        self,
        env: Vector,
        func: Callable[[Any], Any],
        observation_space: Space[Any] | None = None,
        single_observation_space: Space[Any] | None = None,
    ) -> None:
        super().__init__(env)
        if single_observation_space is not None:
            self.single_observation_space = single_observation_space
            self.observation_space = batch_space(single_observation_space, self.num_envs)
        if observation_space is not None:
            self.observation_space = observation_space
        batched = batch_space(self.single_observation_space, self.num_envs)
        if self.observation_space != batched:
            warn(
                f"For {env}, the observation space is {self.observation_space}, which is not the "
                f"batch of the single observation space, {batched}"
            )
        self.func = func

    def observations(self, observations: Any) -> Any:
        """Return the transformed observations."""
        return self.func(observations)


class VectorizeTransformObservation(VectorObservationWrapper):
    """Applies a wrapper for single environments to the observation of each slot.

    Args:
        env: The vector to wrap.
        wrapper: The class of the wrapper, such as ``gymnasium.wrappers.DiscretizeObservation``.
        **kwargs: Arguments of its constructor besides the environment.

    Example:
        >>> import shoal
        >>> envs = shoal.make("MountainCar-v0", num_envs=2, backend="inline")
        >>> discretize = gymnasium.wrappers.DiscretizeObservation
        >>> with VectorizeTransformObservation(envs, discretize, bins=10) as envs:
        ...     envs.reset(seed=123)[0]
        array([45, 45])
    """

    def __init__(
        self, env: Vector, wrapper: type[gymnasium.ObservationWrapper[Any, Any, Any]], **kwargs: Any
    ) -> None:
        super().__init__(env)
        single = gymnasium.Env[Any, Any]()
        single.observation_space = env.single_observation_space
        self.wrapper: Any = wrapper(single, **kwargs)
        self.single_observation_space = self.wrapper.observation_space
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def observations(self, observations: Any) -> Any:
        """Return the observations transformed by the wrapper, one by one."""
        rows = iterate(self.env.observation_space, observations)
        transformed = [self.wrapper.observation(row) for row in rows]
        return batch_of(self.single_observation_space, transformed)

    def final_observations(self, finals: Finals, observations: Any) -> Finals:  # noqa: ARG002
        """Return the final observations transformed by the wrapper, one by one."""
        return {slot: self.wrapper.observation(final) for slot, final in finals.items()}

    def _as_batch(self, values: Arrays) -> Arrays:
        """Copy values into a new array with the shape and dtype of a batch."""
        space = self.single_observation_space
        batch: Arrays = np.empty((self.num_envs, *(space.shape or ())), space.dtype)
        np.copyto(batch, values.reshape(batch.shape))
        return batch


class FilterObservation(VectorizeTransformObservation):
    """Keeps only some parts of ``Dict`` or ``Tuple`` observations.

    Args:
        env: The vector to wrap.
        filter_keys: The keys or indices of the parts to keep.

    Example:
        >>> import shoal
        >>> envs = shoal.make("Blackjack-v1", num_envs=2, backend="inline")
        >>> with FilterObservation(envs, [0]) as envs:
        ...     envs.single_observation_space
        Tuple(Discrete(32))
    """

    def __init__(self, env: Vector, filter_keys: Sequence[str | int]) -> None:
        super().__init__(env, transform_observation.FilterObservation, filter_keys=filter_keys)

    def observations(self, observations: Any) -> Any:
        """Return the parts to keep."""
        if isinstance(self.single_observation_space, spaces.Dict):
            return {key: deepcopy(observations[key]) for key in self.single_observation_space}
        return tuple(deepcopy(observations[key]) for key in self.wrapper.filter_keys)


class FlattenObservation(VectorizeTransformObservation):
    """Flattens each observation to a vector.

    Args:
        env: The vector to wrap.

    Example:
        >>> import shoal
        >>> with FlattenObservation(shoal.make("FrozenLake-v1", 2, backend="inline")) as envs:
        ...     envs.reset(seed=0)[0].shape
        (2, 16)
    """

    def __init__(self, env: Vector) -> None:
        super().__init__(env, transform_observation.FlattenObservation)

    def observations(self, observations: Any) -> Any:
        """Return the flattened observations."""
        if isinstance(self.env.single_observation_space, spaces.Box):
            return self._as_batch(observations)
        return super().observations(observations)


class GrayscaleObservation(VectorizeTransformObservation):
    """Converts RGB images to grayscale.

    Args:
        env: The vector to wrap, whose observations are RGB images in ``uint8``.
        keep_dim: Whether images keep their last axis, with a length of 1.
    """

    def __init__(self, env: Vector, keep_dim: bool = False) -> None:
        super().__init__(env, transform_observation.GrayscaleObservation, keep_dim=keep_dim)

    def observations(self, observations: Any) -> Arrays:
        """Return the images in grayscale."""
        gray = np.empty(observations.shape[:-1], np.uint8)
        # One image at a time, since it fits the cache, and one channel at a time, since sums along
        # an axis of length 3 are slow. The order of the additions is that of np.sum.
        for image, result in zip(observations, gray, strict=True):
            luminance = image[..., 0] * _RED
            luminance += image[..., 1] * _GREEN
            luminance += image[..., 2] * _BLUE
            result[:] = luminance
        return gray.reshape(self.num_envs, *(self.single_observation_space.shape or ()))


class ResizeObservation(VectorizeTransformObservation):
    """Resizes images with OpenCV.

    Args:
        env: The vector to wrap, whose observations are images in ``uint8``.
        shape: The new height and width.
    """

    def __init__(self, env: Vector, shape: tuple[int, ...]) -> None:
        super().__init__(env, transform_observation.ResizeObservation, shape=shape)


class ReshapeObservation(VectorizeTransformObservation):
    """Reshapes observations.

    Args:
        env: The vector to wrap, whose observation space is a ``Box``.
        shape: The new shape of one observation, with the same number of elements.

    Example:
        >>> import shoal
        >>> envs = shoal.make("CartPole-v1", num_envs=3, backend="inline")
        >>> with ReshapeObservation(envs, (2, 2)) as envs:
        ...     envs.reset(seed=0)[0].shape
        (3, 2, 2)
    """

    def __init__(self, env: Vector, shape: int | tuple[int, ...]) -> None:
        super().__init__(env, transform_observation.ReshapeObservation, shape=shape)

    def observations(self, observations: Any) -> Arrays:
        """Return the observations in their new shape."""
        return self._as_batch(observations)


class RescaleObservation(VectorizeTransformObservation):
    """Rescales observations from their bounds to new bounds.

    Args:
        env: The vector to wrap, whose observation space is a ``Box``.
        min_obs: The new lower bound, a number or an array with one for each element.
        max_obs: The new upper bound, a number or an array with one for each element.

    Example:
        >>> import shoal
        >>> envs = shoal.make("MountainCar-v0", num_envs=2, backend="inline")
        >>> with RescaleObservation(envs, -1.0, 1.0) as envs:
        ...     envs.single_observation_space
        Box(-1.0, 1.0, (2,), float32)
    """

    def __init__(
        self,
        env: Vector,
        min_obs: float | np.floating[Any] | np.integer[Any] | Arrays,
        max_obs: float | np.floating[Any] | np.integer[Any] | Arrays,
    ) -> None:
        super().__init__(
            env, transform_observation.RescaleObservation, min_obs=min_obs, max_obs=max_obs
        )

    def observations(self, observations: Any) -> Arrays:
        """Return the rescaled observations."""
        return self._as_batch(self.wrapper.func(observations))


class DtypeObservation(VectorizeTransformObservation):
    """Casts observations to another dtype.

    Args:
        env: The vector to wrap, whose observations are arrays or numbers.
        dtype: The new dtype.

    Example:
        >>> import shoal
        >>> envs = shoal.make("CartPole-v1", num_envs=2, backend="inline")
        >>> with DtypeObservation(envs, np.float64) as envs:
        ...     envs.reset(seed=0)[0].dtype
        dtype('float64')
    """

    def __init__(self, env: Vector, dtype: npt.DTypeLike) -> None:
        super().__init__(env, transform_observation.DtypeObservation, dtype=dtype)

    def observations(self, observations: Any) -> Arrays:
        """Return the observations with their new dtype."""
        cast: Arrays = observations.astype(self.single_observation_space.dtype)
        return cast
