"""The skrl frontend: any vector as what skrl's trainers step, in PyTorch.

.. code-block:: python

    from skrl.trainers.torch import SequentialTrainer
    from shoal.skrl import make                             # was: from skrl.envs... import wrap_env

    env = make("Pendulum-v1", num_envs=64)                  # was: wrap_env(gymnasium.make_vec(...))
    SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 10_000}).train()

skrl takes the observations that a step returns for two things: as those that followed the actions,
and as those that the next actions are chosen by. Both are right where a slot is reset in the step
in which its episode ends, but for one thing: where an episode is truncated, skrl's agents estimate
what would have come after it by the first observation of the next one. What was really observed
stands in ``infos["final_obs"]``. In the other modes agents would learn from steps that are none:
those in which a slot is only reset.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import Space, spaces
from gymnasium.vector import AutoresetMode

from shoal._make import make as make_vector
from shoal.errors import MissingExtraError
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector.wrappers._base import autoreset_mode_of

try:
    import torch
    from skrl import config
    from skrl.envs.wrappers.torch import Wrapper
    from skrl.utils.spaces.torch import (
        flatten_tensorized_space,
        tensorize_space,
        unflatten_tensorized_space,
        untensorize_space,
    )
except ImportError as error:
    raise MissingExtraError(
        'skrl, or PyTorch, is not installed, run `pip install "shoal[skrl]"`'
    ) from error

__all__ = ["ShoalWrapper", "make", "wrap"]

Info = dict[str, Any]
Device = str | torch.device | None

_KNOWN = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)


def make(
    what: Any, num_envs: int | None = None, *, device: Device = None, **options: Any
) -> ShoalWrapper:
    """Make a vector of environments for skrl.

    Args:
        what: As for :func:`shoal.make`: an id, a kernel, a function, a list of functions.
        num_envs: How many; for a list it follows from the list.
        device: As for :func:`wrap`.
        **options: As for :func:`shoal.make`. The autoreset mode is the one that skrl needs.

    Example:
        >>> env = make("CartPole-v1", num_envs=3, device="cpu")
        >>> observations, infos = env.reset()
        >>> observations, rewards, *_ = env.step(torch.tensor([[0], [1], [0]]))
        >>> observations.shape, rewards.shape
        (torch.Size([3, 4]), torch.Size([3, 1]))
        >>> env.close()
    """
    vector = make_vector(what, num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
    try:
        return wrap(vector, device=device)
    except BaseException:
        vector.close()
        raise


def wrap(envs: gymnasium.vector.VectorEnv[Any, Any, Any], *, device: Device = None) -> ShoalWrapper:
    """Put skrl's interface on a vector, as its ``wrap_env`` does on environments.

    Args:
        envs: Shoal's, as :func:`shoal.make` makes it, or any other of Gymnasium's interface, in
            wrappers or not. It resets a slot in the step in which its episode ends.
        device: Where tensors are wanted; by default where skrl's configuration says.

    Raises:
        ValueError: The vector resets slots later or not at all, or skrl knows no tensors for one of
            its spaces.
    """
    return ShoalWrapper(envs, device=device)


class ShoalWrapper(Wrapper):  # type: ignore[misc] # skrl tells no types
    """A vector behind skrl's interface.

    Closing this one closes the vector. Other attributes are the vector's. See :func:`wrap`, which
    has the same arguments.
    """

    def __init__(
        self, envs: gymnasium.vector.VectorEnv[Any, Any, Any], *, device: Device = None
    ) -> None:
        if not isinstance(envs, gymnasium.vector.VectorEnv):
            raise TypeError(f"expected a gymnasium.vector.VectorEnv, got {type(envs).__name__}")
        mode = autoreset_mode_of(envs)
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(
                f"the vector's autoreset mode is {mode.name}, but skrl's agents would learn from "
                "the steps that only reset: make it with autoreset_mode=AutoresetMode.SAME_STEP"
            )
        _check(envs.single_observation_space)
        _check(envs.single_action_space)
        super().__init__(envs)
        self._device = config.torch.parse_device(device)
        # Others may return the same arrays in every step.
        self._arrays_are_ours = isinstance(envs, VectorEnv) and envs.pool.copy
        self._latest: tuple[torch.Tensor, Info] | None = None

    @property
    def observation_space(self) -> Space[Any]:
        """The observation space of one slot."""
        space: Space[Any] = self._env.single_observation_space
        return space

    @property
    def action_space(self) -> Space[Any]:
        """The action space of one slot."""
        space: Space[Any] = self._env.single_action_space
        return space

    def reset(self) -> tuple[torch.Tensor, Info]:
        """Begin episodes in all slots, once, with skrl's seed; after that, where they are now.

        Trainers call it when they begin, and after the end of an episode where there is one slot:
        the slot has been reset by then.
        """
        if self._latest is None:
            observations, infos = self._env.reset(seed=config.torch.key)
            self._latest = self._observed(observations), infos
        return self._latest

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Info]:
        """Step every slot.

        Args:
            actions: A row for each slot.

        Returns:
            Observations, rewards, terminated, truncated, with a row for each slot, and the infos of
            the vector.
        """
        space = self.action_space
        parts = unflatten_tensorized_space(space, actions)
        arrays = untensorize_space(space, parts, squeeze_batch_dimension=False)
        observations, rewards, terminated, truncated, infos = self._env.step(_flat(space, arrays))
        self._latest = self._observed(observations), infos
        return (
            self._latest[0],
            self._tensor(rewards, torch.float32).view(-1, 1),
            self._tensor(terminated, torch.bool).view(-1, 1),
            self._tensor(truncated, torch.bool).view(-1, 1),
            infos,
        )

    def state(self) -> None:
        """There is no state but what is observed."""

    def render(self, *_: Any, **__: Any) -> Any:
        """Render each environment, or none where the vector was made without a render mode.

        Trainers call it in every step, unless they are told that they are headless.
        """
        return None if self._env.render_mode is None else self._env.render()

    def close(self) -> None:
        """Close every environment; a second call does nothing."""
        self._env.close()

    def _observed(self, observations: Any) -> torch.Tensor:
        tensors = self._tensors(self.observation_space, observations)
        flat: torch.Tensor = flatten_tensorized_space(
            tensorize_space(self.observation_space, tensors, device=self._device)
        )
        return flat

    def _tensors(self, space: Space[Any], batch: Any) -> Any:
        if isinstance(space, spaces.Dict):
            return {key: self._tensors(part, batch[key]) for key, part in space.spaces.items()}
        if isinstance(space, spaces.Tuple):
            return tuple(map(self._tensors, space.spaces, batch))
        return self._tensor(batch, torch.float32 if isinstance(space, spaces.Box) else torch.int32)

    def _tensor(self, array: Any, dtype: torch.dtype) -> torch.Tensor:
        tensor = torch.from_numpy(np.asarray(array))
        return tensor.to(self._device, dtype, copy=not self._arrays_are_ours)


def _check(space: Space[Any], name: str = "") -> None:
    """Refuse what skrl has no tensors for."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in parts:
            _check(part, f"{name}[{key!r}]")
    elif not isinstance(space, _KNOWN):
        raise ValueError(f"skrl knows no tensors for the space {name or space}: {space}")


def _flat(space: Space[Any], actions: Any) -> Any:
    """Actions as vectors take them: choices in a row, where skrl has them in a column."""
    if isinstance(space, spaces.Dict):
        return {key: _flat(part, actions[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(map(_flat, space.spaces, actions))
    return actions.reshape(-1) if isinstance(space, spaces.Discrete) else actions
