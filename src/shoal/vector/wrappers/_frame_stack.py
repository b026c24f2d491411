"""A wrapper that stacks the most recent observations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium.vector
import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector.utils import batch_space
from gymnasium.wrappers.utils import create_zero_array

from shoal._wrapper_core.stacking import FrameRing
from shoal._wrapper_core.state_files import State
from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import SlotIndex, Step, VectorWrapper
from shoal.vector.wrappers._episodes import EpisodeTracker
from shoal.vector.wrappers._final_observations import Finals, replace_final_observations
from shoal.vector.wrappers._state import SavesState

__all__ = ["FrameStackObservation"]

_STACKABLE = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
_CUSTOM = "_custom"


class FrameStackObservation(SavesState, VectorWrapper):
    """Stacks the last observations of each slot along a new first axis, the newest at the end.

    The stacks equal those of ``gymnasium.wrappers.FrameStackObservation`` around each environment
    bit for bit, including ``final_obs`` and slots that are reset by a mask. Every step returns new
    arrays.

    Args:
        env: The vector to wrap, whose observation space is a ``Box``, ``Discrete``,
            ``MultiDiscrete`` or ``MultiBinary``, or a ``Dict`` or ``Tuple`` of these.
        stack_size: Number of observations in a stack.
        padding_type: The padding before the first observation of an episode: ``"reset"`` for that
            observation itself, ``"zero"`` for the value of the observation space nearest to zero,
            or an observation.

    Example:
        >>> import shoal
        >>> envs = shoal.make("FrozenLake-v1", num_envs=2, backend="inline", is_slippery=False)
        >>> with FrameStackObservation(envs, 3) as envs:
        ...     _ = envs.reset(seed=0)
        ...     envs.step([2, 1])[0]
        array([[0, 0, 1],
               [0, 0, 4]])
    """

    _kind = "shoal.vector.wrappers.FrameStackObservation"

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv[Any, Any, Any],
        stack_size: int,
        *,
        padding_type: Any = "reset",
    ) -> None:
        super().__init__(env)
        space = self.single_observation_space
        if not np.issubdtype(type(stack_size), np.integer):
            raise TypeError(
                f"The stack_size is expected to be an integer, actual type: {type(stack_size)}"
            )
        if stack_size <= 0:
            raise ValueError(
                f"The stack_size needs to be greater than zero, actual value: {stack_size}"
            )
        _map_leaves(space, lambda _: None, space)  # raises if the space cannot be stacked
        self.stack_size = stack_size
        self.padding_type, self.padding_value = _padding(padding_type, space)
        self._frame_space = space
        self._episodes = EpisodeTracker(env)
        self._leaves: list[FrameRing] = []
        self._rings = _map_leaves(space, self._new_ring, space)
        self.single_observation_space = batch_space(space, stack_size)
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector, and start new stacks for the slots that were reset."""
        slots, observations, infos = self._reset_slots(seed, options)
        self._episodes.start(slots)
        self._start_stacks(slots, observations)
        return self._stacks(), infos

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector, and stack its observations."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        transitions = self._episodes.step(terminated, truncated, infos)
        if self._episodes.same_step:
            infos = replace_final_observations(infos, self._final_stacks)
        self._map(lambda ring, frames: ring.push(frames[:, np.newaxis]), observations)
        started = transitions.reset | transitions.restarted
        if started.any():
            self._start_stacks(started, observations)
        return self._stacks(), rewards, terminated, truncated, infos

    def _start_stacks(self, slots: SlotIndex, observations: Any) -> None:
        """Start new stacks with the observations of these slots."""

        def start(ring: FrameRing, frames: Any, padding: Any) -> None:
            newest = frames[slots, np.newaxis]
            ring.fill(slots, newest if self.padding_type == "reset" else np.asarray(padding))
            ring.replace_newest(slots, newest)

        self._map(start, observations, self.padding_value)

    def _stacks(self) -> Any:
        return _map_leaves(self.single_observation_space, FrameRing.stacks, self._rings)

    def _final_stacks(self, finals: Finals) -> Finals:
        def stack(slot: int, final: Any) -> Any:
            return self._map(
                lambda ring, frame: ring.stack_with(
                    slot, np.asarray(frame, ring.frames.dtype)[np.newaxis]
                ),
                final,
            )

        return {slot: stack(slot, final) for slot, final in finals.items()}

    def _map(self, function: Callable[..., Any], *values: Any) -> Any:
        return _map_leaves(self._frame_space, function, self._rings, *values)

    def _new_ring(self, leaf: Space[Any]) -> FrameRing:
        shape = (1, *(leaf.shape or ()))
        ring = FrameRing(self.stack_size, self.num_envs, shape, np.dtype(leaf.dtype), axis=0)
        self._leaves.append(ring)
        return ring

    def _state(self) -> State:
        frames = {f"frames_{number}": ring.ordered() for number, ring in enumerate(self._leaves)}
        return {"num_envs": np.array(self.num_envs), "over": self._episodes.finished, **frames}

    def _restore(self, state: State) -> None:
        self._episodes.finished[:] = state["over"]
        for number, ring in enumerate(self._leaves):
            ring.restore(state[f"frames_{number}"])


def _map_leaves(space: Space[Any], function: Callable[..., Any], *values: Any) -> Any:
    """Apply a function to each leaf of a space and the corresponding parts of the values."""
    if isinstance(space, spaces.Dict):
        return {
            key: _map_leaves(part, function, *(value[key] for value in values))
            for key, part in space.spaces.items()
        }
    if isinstance(space, spaces.Tuple):
        return tuple(
            _map_leaves(part, function, *(value[number] for value in values))
            for number, part in enumerate(space.spaces)
        )
    if not isinstance(space, _STACKABLE):
        raise TypeError(
            "FrameStackObservation supports Box, Discrete, MultiDiscrete and MultiBinary, and "
            f"Dict and Tuple of these, not {space}"
        )
    return function(*values)


def _padding(padding: Any, space: Space[Any]) -> tuple[str, Any]:
    """Return the type of a padding, and its value."""
    if isinstance(padding, str) and padding in ("reset", "zero"):
        return padding, create_zero_array(space)
    if isinstance(padding, str) or padding not in space:
        raise ValueError(
            "Unexpected `padding_type`, expected 'reset', 'zero' or an observation of "
            f"{space}, actual value: {padding!r}"
        )
    return _CUSTOM, padding
