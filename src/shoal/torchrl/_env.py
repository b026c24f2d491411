"""Adapter from a vector to a TorchRL environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium.vector
import numpy as np
import numpy.typing as npt
import torch
from gymnasium import Space, spaces
from tensordict import TensorDict, TensorDictBase
from torchrl.data import Categorical, Composite, Unbounded
from torchrl.envs import EnvBase

from shoal._types import ColumnInfos, RawInfos
from shoal._wrapper_core.tensors import tensor_loader
from shoal.pools import Batch, Pool
from shoal.torchrl._converters import converter_of
from shoal.torchrl._infos import InfoColumns
from shoal.torchrl._manual_resets import ManualResets
from shoal.vector._pool_vector_env import VectorEnv
from shoal.vector._seeding import Seed, Seeding, slot_seeds
from shoal.vector._vector_env_pool import VectorEnvPool

__all__ = ["ShoalEnv"]

_FLAGS = ("done", "terminated", "truncated")
_RESERVED = {*_FLAGS, "reward", "action", "next", "_reset", "_step"}


class ShoalEnv(EnvBase):  # type: ignore[misc]
    """A vector with TorchRL's interface: one environment with ``batch_size=[num_envs]``.

    The specs equal those of ``GymEnv``. Observations are stored under ``"observation"``, and the
    parts of a Dict observation under their own keys. Parts of a Tuple are named ``"0"``, ``"1"``
    and so on. Actions are stored under ``"action"``. Rewards are float32. Tensors of observations
    and flags share memory with the vector's arrays if these are new in every step. Otherwise (with
    ``copy=False``, or for vectors of other libraries) they are copied once.

    TorchRL decides which slots are reset, and needs the final observations of episodes. Both work
    in every autoreset mode. With NEXT_STEP and DISABLED, a vector of another library must support
    ``options["reset_mask"]``. ``rollout(break_when_all_done=True)`` steps only some of the slots,
    which only Shoal's vectors without wrappers support. Closing the environment closes the vector.

    ``set_seed`` starts new episodes in all slots, with the same seeds as the vector's
    ``reset(seed=...)``; the next ``reset`` returns their observations. ``reset`` also accepts
    ``seed`` and ``options``.

    Args:
        vector: A vector created by :func:`shoal.make`, or any other Gymnasium vector environment.
        device: The device of tensors; None for the CPU and tensordicts without a device. Transfers
            to a CUDA device use pinned memory.
        categorical_action_encoding: Whether discrete values in actions and observations are encoded
            as integers from 0 instead of one-hot. Name and default are those of ``GymEnv``.
        infos: Infos that become entries of the tensordict, each with the space of its values, or a
            Dict space for a nested info. Slots without the info have zeros.

    Raises:
        TypeError: If TorchRL has no spec for a part of a space.

    Example:
        >>> import shoal
        >>> from shoal.torchrl import ShoalEnv
        >>> env = ShoalEnv(shoal.make("CartPole-v1", num_envs=2), categorical_action_encoding=True)
        >>> _ = env.set_seed(42)
        >>> steps = env.rollout(3, lambda td: td.set("action", torch.tensor([0, 1])))
        >>> steps["next", "reward"].sum()
        tensor(6.)
        >>> env.close()
    """

    def __init__(
        self,
        vector: gymnasium.vector.VectorEnv[Any, Any, Any],
        *,
        device: torch.device | str | int | None = None,
        categorical_action_encoding: bool = False,
        infos: Mapping[str, Space[Any]] | None = None,
    ) -> None:
        if not isinstance(vector, gymnasium.vector.VectorEnv):
            raise TypeError(f"expected a gymnasium.vector.VectorEnv, got {type(vector).__name__}")
        super().__init__(device=device, batch_size=(vector.num_envs,))
        self.vector = vector
        self.num_envs = vector.num_envs
        self._seeding: Seeding = "adjacent"
        self._pool: Pool
        if isinstance(vector, VectorEnv):
            self._seeding, self._pool = vector.seeding, vector.pool
        else:
            self._pool = VectorEnvPool(vector)
        self._slots = ManualResets(self._pool)
        self._infos = InfoColumns(infos or {})
        self._to_tensors = tensor_loader(device)
        self._make_specs(categorical_action_encoding)
        self.is_closed = False

    def _make_specs(self, is_categorical: bool) -> None:
        space = self.vector.single_observation_space
        self._is_dict = isinstance(space, spaces.Dict)
        parts = space.spaces if isinstance(space, spaces.Dict) else {"observation": space}
        for key in self._infos.spaces:
            if key in parts:
                raise ValueError(f"info {key!r} has the same key as an observation")
        converters = {
            key: converter_of(space, key, is_categorical)
            for key, space in (parts | self._infos.spaces).items()
        }
        for key in converters:
            if key in _RESERVED:
                raise ValueError(f"{key!r} is a reserved key of TorchRL: rename the observation")
        self._observation_converters = converters
        self._action = converter_of(self.vector.single_action_space, "action", is_categorical)
        flag = Categorical(2, (1,), dtype=torch.bool)
        self.observation_spec = self._batched(
            {key: converter.spec for key, converter in converters.items()}
        )
        self.full_action_spec = self._batched({"action": self._action.spec})
        self.full_reward_spec = self._batched({"reward": Unbounded((1,))})
        self.full_done_spec = self._batched({name: flag.clone() for name in _FLAGS})

    def _batched(self, specs: dict[str, Any]) -> Composite:
        composite = Composite(specs).expand(self.batch_size)
        return composite if self.device is None else composite.to(self.device)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        mask = tensordict.get("_step", None)
        if mask is None:
            actions = self._action.decode(tensordict["action"])
            return self._step_results(self._slots.step(actions))
        mask = mask.reshape(self.batch_size)
        actions = self._action.decode(tensordict["action"][mask])
        result: TensorDictBase = self._skip_tensordict(tensordict)
        result[mask] = self._step_results(self._slots.step(actions, _selected_slots(mask)))
        return result

    def _reset(
        self,
        tensordict: TensorDictBase | None = None,
        seed: Seed = None,
        options: dict[str, Any] | None = None,
    ) -> TensorDictBase:
        mask = None if tensordict is None else tensordict.get("_reset", None)
        slots = None if mask is None else _selected_slots(mask.reshape(self.batch_size))
        seeds = None if seed is None else self._seeds(seed)
        observations, infos = self._slots.reset(slots, seeds, options)
        arrays = self._observation_arrays(observations, (infos, None), self.num_envs)
        return self._tensordict(self._encode(self._to_tensors(arrays)), self.num_envs)

    def _step_results(self, batch: Batch) -> TensorDictBase:
        rows = len(batch.slots)
        observations, rewards, terminated, truncated = self._to_tensors(
            (
                self._observation_arrays(batch.observations, batch.infos, rows),
                batch.rewards,
                batch.terminated,
                batch.truncated,
            )
        )
        entries = self._encode(observations)
        entries["reward"] = rewards.to(torch.float32).unsqueeze(1)
        entries["terminated"] = terminated.unsqueeze(1)
        entries["truncated"] = truncated.unsqueeze(1)
        entries["done"] = entries["terminated"] | entries["truncated"]
        return self._tensordict(entries, rows)

    def _observation_arrays(
        self, observations: Any, infos: RawInfos | ColumnInfos | None, rows: int
    ) -> dict[str, Any]:
        """Return observations and requested infos as arrays by key."""
        parts = observations if self._is_dict else {"observation": observations}
        return {**parts, **self._infos.of(infos, rows)}

    def _encode(self, tensors: dict[str, Any]) -> dict[str, Any]:
        return {
            key: converter.encode(tensors[key])
            for key, converter in self._observation_converters.items()
        }

    def _tensordict(self, entries: dict[str, Any], rows: int) -> TensorDictBase:
        return TensorDict(entries, batch_size=(rows,), device=self.device)

    def _set_seed(self, seed: int | None) -> None:
        self._slots.begin(self._seeds(seed))

    def _seeds(self, seed: Seed) -> list[int | None]:
        return slot_seeds(seed, self.num_envs, self._seeding)

    def to(self, device: torch.device | str | int) -> ShoalEnv:
        """Use another device for tensors from now on. The environments are not affected."""
        super().to(device)
        self._to_tensors = tensor_loader(self.device)
        return self

    def close(self, *, raise_if_closed: bool = True) -> None:  # noqa: ARG002
        """Close the vector and its environments. A second call does nothing."""
        self.is_closed = True
        self.vector.close()
        self._pool.close()

    def __del__(self) -> None:
        """Do not close the vector, which may still be in use."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vector}, device={self.device})"


def _selected_slots(mask: torch.Tensor) -> npt.NDArray[np.int64]:
    slots: npt.NDArray[np.int64] = mask.cpu().nonzero().flatten().numpy()
    return slots
