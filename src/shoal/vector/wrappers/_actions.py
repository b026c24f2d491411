"""Wrappers that change actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import gymnasium.vector
import numpy as np
from gymnasium import Space
from gymnasium.logger import warn
from gymnasium.vector.utils import batch_space, concatenate, create_empty_array, iterate
from gymnasium.wrappers import transform_action

from shoal.vector.wrappers._base import Arrays, VectorActionWrapper

__all__ = ["ClipAction", "RescaleAction", "TransformAction", "VectorizeTransformAction"]

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]


class TransformAction(VectorActionWrapper):
    """Transforms the batch of actions with a function.

    Args:
        env: The vector to wrap.
        func: Takes the actions of all slots, and returns those for the wrapped vector.
        action_space: The space of the actions that the function takes. By default the batch of
            ``single_action_space``, or the wrapped vector's space if that is not given either.
        single_action_space: The space of the actions that the function takes, for one slot.

    Example:
        >>> import shoal
        >>> envs = shoal.make("CartPole-v1", num_envs=2, backend="inline")
        >>> with TransformAction(envs, lambda actions: 1 - actions) as envs:
        ...     _ = envs.reset(seed=0)
        ...     envs.step(np.array([0, 1]))[0][:, 1].round(1)
        array([ 0.2, -0.1], dtype=float32)
    """

    def __init__(
        self,
        env: Vector,
        func: Callable[[Any], Any],
        action_space: Space[Any] | None = None,
        single_action_space: Space[Any] | None = None,
    ) -> None:
        super().__init__(env)
        if single_action_space is not None:
            self.single_action_space = single_action_space
            self.action_space = batch_space(single_action_space, self.num_envs)
        if action_space is not None:
            self.action_space = action_space
        batched = batch_space(self.single_action_space, self.num_envs)
        if self.action_space != batched:
            warn(
                f"For {env}, the action space is {self.action_space}, which is not the batch of "
                f"the single action space, {batched}"
            )
        self.func = func

    def actions(self, actions: Any) -> Any:
        """Return the transformed actions."""
        return self.func(actions)


class VectorizeTransformAction(VectorActionWrapper):
    """Applies a wrapper for single environments to the action of each slot.

    Args:
        env: The vector to wrap.
        wrapper: The class of the wrapper, such as ``gymnasium.wrappers.TransformAction``.
        **kwargs: Arguments of its constructor besides the environment.
    """

    def __init__(
        self, env: Vector, wrapper: type[gymnasium.ActionWrapper[Any, Any, Any]], **kwargs: Any
    ) -> None:
        super().__init__(env)
        single = gymnasium.Env[Any, Any]()
        single.action_space = env.single_action_space
        self.wrapper: Any = wrapper(single, **kwargs)
        self.single_action_space = self.wrapper.action_space
        self.action_space = batch_space(self.single_action_space, self.num_envs)
        self._same_space = self.action_space == env.action_space

    def actions(self, actions: Any) -> Any:
        """Return the actions transformed by the wrapper, one by one."""
        changed = [self.wrapper.action(action) for action in iterate(self.action_space, actions)]
        return concatenate(self.env.single_action_space, changed, self._empty(actions))

    def _empty(self, actions: Any) -> Any:
        # As in Gymnasium, arrays keep their dtype if the space does not change.
        if self._same_space and isinstance(actions, np.ndarray):
            return np.empty_like(actions)
        return create_empty_array(self.env.single_action_space, self.num_envs)


class _ArrayAction(VectorizeTransformAction):
    """A wrapper whose function accepts a batch of actions as well as one action."""

    def actions(self, actions: Any) -> Any:
        """Return the actions transformed by the wrapper."""
        # Actions of another shape may be broadcast to each slot.
        if np.shape(actions) != self.action_space.shape:
            return super().actions(actions)
        changed = self._empty(actions)
        np.copyto(changed, self.wrapper.func(np.asarray(actions)))
        return changed


class ClipAction(_ArrayAction):
    """Clips continuous actions to the bounds of the wrapped vector's action space.

    Args:
        env: The vector to wrap, whose action space is a ``Box``.

    Example:
        >>> import shoal
        >>> with ClipAction(shoal.make("Pendulum-v1", num_envs=2, backend="inline")) as envs:
        ...     envs.single_action_space
        ...     envs.actions(np.array([[5.0], [-0.5]]))
        Box(-inf, inf, (1,), float32)
        array([[ 2. ],
               [-0.5]], dtype=float32)
    """

    def __init__(self, env: Vector) -> None:
        super().__init__(env, transform_action.ClipAction)


class RescaleAction(_ArrayAction):
    """Rescales actions between two bounds to the bounds of the wrapped vector's action space.

    Args:
        env: The vector to wrap, whose action space is a ``Box``.
        min_action: The lower bound, a number or an array with one for each element.
        max_action: The upper bound, a number or an array with one for each element.

    Example:
        >>> import shoal
        >>> envs = shoal.make("Pendulum-v1", num_envs=2, backend="inline")
        >>> with RescaleAction(envs, 0.0, 1.0) as envs:
        ...     envs.actions(np.array([[0.5], [1.0]]))
        array([[0.],
               [2.]], dtype=float32)
    """

    def __init__(
        self,
        env: Vector,
        min_action: float | Arrays,
        max_action: float | Arrays,
    ) -> None:
        super().__init__(
            env, transform_action.RescaleAction, min_action=min_action, max_action=max_action
        )
