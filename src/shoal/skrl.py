"""The skrl frontend: vectors for skrl's PyTorch trainers.

.. code-block:: python

    from skrl.trainers.torch import SequentialTrainer
    from shoal.skrl import make                             # was: from skrl.envs... import wrap_env

    env = make("Pendulum-v1", num_envs=64)                  # was: wrap_env(gymnasium.make_vec(...))
    SequentialTrainer(env=env, agents=agent, cfg={"timesteps": 10_000}).train()

The frontend requires the autoreset mode SAME_STEP. skrl uses the observations returned by a step
both as next observations of the transition and as input of the next actions. In the other modes,
agents would learn from steps that only reset a slot. With SAME_STEP there is one deviation: when an
episode is truncated, skrl's agents bootstrap from the first observation of the next episode. The
true final observation is in ``infos["final_obs"]``.
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
        'skrl, or PyTorch, is not installed: pip install "shoal[skrl]"'
    ) from error

__all__ = ["ShoalWrapper", "make", "wrap"]

Info = dict[str, Any]
Device = str | torch.device | None

_SUPPORTED_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete)


def make(
    what: Any, num_envs: int | None = None, *, device: Device = None, **options: Any
) -> ShoalWrapper:
    """Create a vector of environments for skrl.

    Args:
        what: An argument of :func:`shoal.make`: an id, a kernel, a function or a list of functions.
        num_envs: Number of environments. Defaults to 1, or to the length of the list.
        device: See :func:`wrap`.
        **options: Other options of :func:`shoal.make`, except the autoreset mode, which is always
            SAME_STEP.

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
    """Wrap a vector for skrl, like skrl's ``wrap_env``.

    Args:
        envs: A vector created by :func:`shoal.make`, or any other Gymnasium vector environment,
            with or without wrappers. Its autoreset mode must be SAME_STEP.
        device: The device of tensors. Defaults to that in skrl's configuration.

    Raises:
        ValueError: If the autoreset mode is not SAME_STEP, or skrl does not support one of the
            spaces.
    """
    return ShoalWrapper(envs, device=device)


class ShoalWrapper(Wrapper):  # type: ignore[misc] # skrl is not typed
    """A vector with skrl's interface.

    Closing the wrapper closes the vector. Other attributes are forwarded to the vector. The
    arguments are those of :func:`wrap`.
    """

    def __init__(
        self, envs: gymnasium.vector.VectorEnv[Any, Any, Any], *, device: Device = None
    ) -> None:
        if not isinstance(envs, gymnasium.vector.VectorEnv):
            raise TypeError(f"expected a gymnasium.vector.VectorEnv, got {type(envs).__name__}")
        mode = autoreset_mode_of(envs)
        if mode is not AutoresetMode.SAME_STEP:
            raise ValueError(
                f"the vector's autoreset mode is {mode.name}, in which skrl's agents would learn "
                "from steps that only reset a slot: create the vector with "
                "autoreset_mode=AutoresetMode.SAME_STEP"
            )
        _check(envs.single_observation_space)
        _check(envs.single_action_space)
        super().__init__(envs)
        self._device = config.torch.parse_device(device)
        # Other vectors may reuse their arrays in every step.
        self._arrays_are_new = isinstance(envs, VectorEnv) and envs.pool.copy
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
        """Reset all slots with skrl's seed on the first call; later return the newest observations.

        Trainers call it when they start and, if there is only one slot, after each episode, when
        the slot has already been reset.
        """
        if self._latest is None:
            observations, infos = self._env.reset(seed=config.torch.key)
            self._latest = self._observation_tensor(observations), infos
        return self._latest

    def step(
        self, actions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, Info]:
        """Step every slot.

        Args:
            actions: Actions with one row per slot.

        Returns:
            Observations, rewards, terminated and truncated with one row per slot, and the infos of
            the vector.
        """
        space = self.action_space
        parts = unflatten_tensorized_space(space, actions)
        arrays = untensorize_space(space, parts, squeeze_batch_dimension=False)
        arrays = _flatten_discrete(space, arrays)
        observations, rewards, terminated, truncated, infos = self._env.step(arrays)
        self._latest = self._observation_tensor(observations), infos
        return (
            self._latest[0],
            self._tensor(rewards, torch.float32).view(-1, 1),
            self._tensor(terminated, torch.bool).view(-1, 1),
            self._tensor(truncated, torch.bool).view(-1, 1),
            infos,
        )

    def state(self) -> None:
        """Return None: there is no global state."""

    def render(self, *_: Any, **__: Any) -> Any:
        """Render each environment; return None if the vector has no render mode.

        Trainers call it in every step unless they are configured as headless.
        """
        return None if self._env.render_mode is None else self._env.render()

    def close(self) -> None:
        """Close all environments. A second call does nothing."""
        self._env.close()

    def _observation_tensor(self, observations: Any) -> torch.Tensor:
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
        return tensor.to(self._device, dtype, copy=not self._arrays_are_new)


def _check(space: Space[Any], name: str = "") -> None:
    """Raise ValueError if skrl cannot convert values of the space to tensors."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.spaces.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        for key, part in parts:
            _check(part, f"{name}[{key!r}]")
    elif not isinstance(space, _SUPPORTED_SPACES):
        raise ValueError(f"skrl does not support the space {name or space}: {space}")


def _flatten_discrete(space: Space[Any], actions: Any) -> Any:
    """Flatten discrete actions, which skrl returns as columns."""
    if isinstance(space, spaces.Dict):
        return {key: _flatten_discrete(part, actions[key]) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Tuple):
        return tuple(map(_flatten_discrete, space.spaces, actions))
    return actions.reshape(-1) if isinstance(space, spaces.Discrete) else actions
