"""Stacking of observations along their channels."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from operator import index
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.preprocessing import is_image_space, is_image_space_channels_first

from shoal._wrapper_core.stacking import FrameRing
from shoal.sb3._infos import TERMINAL_OBSERVATION

__all__ = ["StackedObservations"]

ChannelsOrder = str | Mapping[str, Any] | None

# The type variable of Stable-Baselines3's annotations; both types are supported.
Observations = TypeVar("Observations", npt.NDArray[Any], dict[str, npt.NDArray[Any]])


class StackedObservations(Generic[Observations]):
    """The last observations of each environment, concatenated along the channel axis.

    The methods return new arrays.

    Args:
        num_envs: Number of environments.
        n_stack: Number of observations in a stack.
        observation_space: The space of one observation: a Box, or a Dict of Boxes or Dicts.
        channels_order: The channel axis, ``"first"`` or ``"last"``. If None, it is inferred for
            images, and is the last axis otherwise. For a Dict, it can be a mapping from keys.

    Example:
        >>> stacks = StackedObservations(1, n_stack=2, observation_space=spaces.Box(0, 9, (1,)))
        >>> stacks.reset(np.array([[1.0]]))
        array([[0., 1.]], dtype=float32)
        >>> stacks.update(np.array([[2.0]]), np.array([False]), [{}])
        (array([[1., 2.]], dtype=float32), [{}])
    """

    stacked_observation_space: spaces.Box | spaces.Dict

    def __init__(
        self,
        num_envs: int,
        n_stack: int,
        observation_space: spaces.Box | spaces.Dict,
        channels_order: ChannelsOrder = None,
    ) -> None:
        if isinstance(n_stack, bool) or index(n_stack) < 1:
            raise ValueError(f"n_stack must be a positive integer, got {n_stack!r}")
        self.n_stack = n_stack
        self.observation_space = observation_space
        if isinstance(observation_space, spaces.Dict):
            orders = channels_order
            if not isinstance(orders, Mapping):
                orders = dict.fromkeys(observation_space.spaces, channels_order)
            if missing := observation_space.spaces.keys() - orders.keys():
                raise KeyError(f"channels_order has no entry for {sorted(missing)}")
            self.sub_stacked_observations: dict[str, StackedObservations[Any]] = {
                key: StackedObservations(num_envs, n_stack, _stackable(space), orders[key])
                for key, space in observation_space.spaces.items()
            }
            self.stacked_observation_space = spaces.Dict(
                {
                    key: stacks.stacked_observation_space
                    for key, stacks in self.sub_stacked_observations.items()
                }
            )
            return
        space = _stackable(observation_space)
        if isinstance(channels_order, Mapping):
            raise TypeError("When the observation space is Box, channels_order can't be a dict.")
        self.channels_first, self.stack_dimension, self.stacked_shape, self.repeat_axis = (
            self.compute_stacking(n_stack, space, channels_order)
        )
        assert space.dtype is not None
        self.stacked_observation_space = spaces.Box(
            np.repeat(space.low, n_stack, axis=self.repeat_axis),
            np.repeat(space.high, n_stack, axis=self.repeat_axis),
            dtype=space.dtype.type,
        )
        self._ring = FrameRing(n_stack, num_envs, space.shape, space.dtype, self.repeat_axis)

    @staticmethod
    def compute_stacking(
        n_stack: int, observation_space: spaces.Box, channels_order: str | None = None
    ) -> tuple[bool, int, tuple[int, ...], int]:
        """Return the parameters of stacking.

        Returns:
            Whether the channels come first, the stacking axis of a batch, the shape of a stack, and
            the stacking axis of a single observation.
        """
        if channels_order not in ("first", "last", None):
            raise AssertionError(
                "`channels_order` must be one of following: 'last', 'first', "
                f"got {channels_order!r}"
            )
        channels_first = channels_order == "first"
        if channels_order is None and is_image_space(observation_space):
            channels_first = is_image_space_channels_first(observation_space)
        axis = 0 if channels_first else -1
        shape = list(observation_space.shape)
        shape[axis] *= n_stack
        return channels_first, 1 if channels_first else -1, tuple(shape), axis

    @property
    def stacked_obs(self) -> npt.NDArray[Any]:
        """The stack of each environment."""
        return self._ring.stacks()

    def reset(self, observation: Any) -> Any:
        """Start new stacks, and return them: zeros followed by these observations."""
        if isinstance(observation, dict):
            subs = self.sub_stacked_observations
            return {key: subs[key].reset(part) for key, part in observation.items()}
        self._ring.clear()
        self._ring.push(observation)
        return self._ring.stacks()

    def update(
        self, observations: Any, dones: npt.NDArray[np.bool_], infos: list[dict[str, Any]]
    ) -> tuple[Any, list[dict[str, Any]]]:
        """Add observations, and return the stacks and infos.

        Environments that are done get new stacks, and the terminal observations in their infos are
        replaced by stacks.
        """
        dones = np.asarray(dones, np.bool_)
        terminals: dict[int, Any] = {}
        for slot in np.flatnonzero(dones).tolist():
            if TERMINAL_OBSERVATION in infos[slot]:
                terminals[slot] = infos[slot][TERMINAL_OBSERVATION]
            else:
                warnings.warn(
                    "VecFrameStack wrapping a VecEnv without terminal_observation info",
                    stacklevel=3,
                )
        stacks, terminal_stacks = self._add(observations, dones, terminals)
        for slot, terminal in terminal_stacks.items():
            infos[slot][TERMINAL_OBSERVATION] = terminal
        return stacks, infos

    def _add(
        self, observations: Any, dones: npt.NDArray[np.bool_], terminals: dict[int, Any]
    ) -> tuple[Any, dict[int, Any]]:
        """Return the new stacks, and the stacks with the terminal observations by slot."""
        if isinstance(observations, dict):
            results = {
                key: self.sub_stacked_observations[key]._add(
                    part, dones, {slot: terminal[key] for slot, terminal in terminals.items()}
                )
                for key, part in observations.items()
            }
            stacks = {key: part for key, (part, _) in results.items()}
            terminal_stacks = {
                slot: {key: part[slot] for key, (_, part) in results.items()} for slot in terminals
            }
            return stacks, terminal_stacks
        ring = self._ring
        stacks_of_slots = {
            slot: ring.stack_with(slot, terminal) for slot, terminal in terminals.items()
        }
        if dones.any():
            ring.clear(dones)
        ring.push(observations)
        return ring.stacks(), stacks_of_slots


def _stackable(space: Any) -> Any:
    if isinstance(space, spaces.Dict) or (isinstance(space, spaces.Box) and space.shape):
        return space
    raise TypeError(
        "StackedObservations only supports Box (of one dimension at least) and Dict as observation "
        f"spaces. {space} was provided."
    )
