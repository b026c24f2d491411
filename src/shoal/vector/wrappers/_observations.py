"""Wrappers that change observations, each by itself."""

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
    """Changes the observations by a function of all slots' observations.

    Where slots are reset in the same step, the observations that episodes ended with are put into
    the rows of their slots, and the function is called a second time.

    Args:
        env: The vector to wrap.
        func: Takes the observations of all slots, and returns others.
        observation_space: What the function returns, for all slots. None: the batch of
            ``single_observation_space``, or the wrapped vector's where that is not given either.
        single_observation_space: What the function returns, for one slot.

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
        """What the function makes of the observations."""
        return self.func(observations)


class VectorizeTransformObservation(VectorObservationWrapper):
    """Changes the observation of each slot as a wrapper for single environments does.

    Args:
        env: The vector to wrap.
        wrapper: The class of the wrapper, such as ``gymnasium.wrappers.DiscretizeObservation``.
        **kwargs: What its constructor takes besides the environment.

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
        """What the wrapper makes of each observation."""
        rows = iterate(self.env.observation_space, observations)
        changed = [self.wrapper.observation(row) for row in rows]
        return batch_of(self.single_observation_space, changed)

    def final_observations(self, finals: Finals, observations: Any) -> Finals:  # noqa: ARG002
        """What the wrapper makes of each final observation."""
        return {slot: self.wrapper.observation(final) for slot, final in finals.items()}

    def _as_batch(self, values: Arrays) -> Arrays:
        """A new array with these values, of the shape and dtype of a batch."""
        space = self.single_observation_space
        batch: Arrays = np.empty((self.num_envs, *(space.shape or ())), space.dtype)
        np.copyto(batch, values.reshape(batch.shape))
        return batch


class FilterObservation(VectorizeTransformObservation):
    """Keeps some of the parts of ``Dict`` or ``Tuple`` observations.

    Args:
        env: The vector to wrap.
        filter_keys: The keys, or the numbers, of the parts to keep.

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
        """The parts that are kept."""
        if isinstance(self.single_observation_space, spaces.Dict):
            return {key: deepcopy(observations[key]) for key in self.single_observation_space}
        return tuple(deepcopy(observations[key]) for key in self.wrapper.filter_keys)


class FlattenObservation(VectorizeTransformObservation):
    """Lays observations out as one row of numbers each.

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
        """The observations, flattened."""
        if isinstance(self.env.single_observation_space, spaces.Box):
            return self._as_batch(observations)
        return super().observations(observations)


class GrayscaleObservation(VectorizeTransformObservation):
    """Turns colour images into shades of grey.

    Args:
        env: The vector to wrap, whose observations are images of three colours in ``uint8``.
        keep_dim: Whether images keep their last axis, with a length of 1.
    """

    def __init__(self, env: Vector, keep_dim: bool = False) -> None:
        super().__init__(env, transform_observation.GrayscaleObservation, keep_dim=keep_dim)

    def observations(self, observations: Any) -> Arrays:
        """The images in grey."""
        grey = np.empty(observations.shape[:-1], np.uint8)
        # Image by image, which the cache can hold, and colour by colour, since sums along an axis
        # of three are slow; the order of the additions is that of np.sum.
        for image, result in zip(observations, grey, strict=True):
            shade = image[..., 0] * _RED
            shade += image[..., 1] * _GREEN
            shade += image[..., 2] * _BLUE
            result[:] = shade
        return grey.reshape(self.num_envs, *(self.single_observation_space.shape or ()))


class ResizeObservation(VectorizeTransformObservation):
    """Resizes images with OpenCV.

    Args:
        env: The vector to wrap, whose observations are images in ``uint8``.
        shape: The new height and width.
    """

    def __init__(self, env: Vector, shape: tuple[int, ...]) -> None:
        super().__init__(env, transform_observation.ResizeObservation, shape=shape)


class ReshapeObservation(VectorizeTransformObservation):
    """Gives observations another shape with as many elements.

    Args:
        env: The vector to wrap, whose observations are a ``Box``.
        shape: The new shape of one observation.

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
        """The observations in their new shape."""
        return self._as_batch(observations)


class RescaleObservation(VectorizeTransformObservation):
    """Stretches observations from their own bounds to others.

    Args:
        env: The vector to wrap, whose observations are a ``Box``.
        min_obs: The new lower bound, a number or one for each element.
        max_obs: The new upper bound, a number or one for each element.

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
        """The observations within their new bounds."""
        return self._as_batch(self.wrapper.func(observations))


class DtypeObservation(VectorizeTransformObservation):
    """Gives observations another dtype.

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
        """The observations with their new dtype."""
        changed: Arrays = observations.astype(self.single_observation_space.dtype)
        return changed
