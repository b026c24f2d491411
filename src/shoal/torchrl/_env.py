"""Any vector as an environment of TorchRL."""

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
    """A vector behind TorchRL's interface: one environment with ``batch_size=[num_envs]``.

    Its specs are those that ``GymEnv`` would have. Observations stand under ``"observation"``, or,
    if they are a Dict, each part under its own key; parts of a Tuple are called ``"0"``, ``"1"``
    and so on, and the parts of actions stand under ``"action"``. Rewards are float32. Tensors of
    observations and flags share the memory of the vector's arrays, which are new in every step; of
    a vector that uses its arrays again (``copy=False``, or one that is not Shoal's) they are copied
    once.

    TorchRL says which slots are reset, and needs the observations with which episodes have ended:
    it gets both in every autoreset mode. With NEXT_STEP and DISABLED, a vector of another library
    must know ``options["reset_mask"]``. ``rollout(break_when_all_done=True)``, which steps some of
    the slots, is for vectors of Shoal's that are not wrapped. Closing closes the vector.

    ``set_seed`` begins new episodes in all slots, with the seeds that the vector's own
    ``reset(seed=...)`` gives them; the next ``reset`` hands out their observations. ``reset`` also
    takes ``seed`` and ``options``.

    Args:
        vector: Shoal's, as :func:`shoal.make` makes it, or any other of Gymnasium's interface.
        device: Where tensors are; None for the CPU, and for tensordicts without a device. To a CUDA
            device they travel through pinned memory.
        categorical_action_encoding: Whether choices are numbers from 0 instead of one-hot, in
            actions and in observations; the name, and the default, are those of ``GymEnv``.
        infos: Infos that become entries like observations, each with the space of its values, or a
            Dict for an info with parts. A slot that does not tell of it has zeros.

    Raises:
        TypeError: TorchRL has no spec for a part of a space, which the message names.

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
        self._loaded = tensor_loader(device)
        self._make_specs(categorical_action_encoding)
        self.is_closed = False

    def _make_specs(self, is_categorical: bool) -> None:
        seen = self.vector.single_observation_space
        self._has_parts = isinstance(seen, spaces.Dict)
        parts = seen.spaces if isinstance(seen, spaces.Dict) else {"observation": seen}
        for key in self._infos.spaces:
            if key in parts:
                raise ValueError(f"info {key!r} has the key of an observation")
        observed = {
            key: converter_of(space, key, is_categorical)
            for key, space in (parts | self._infos.spaces).items()
        }
        for key in observed:
            if key in _RESERVED:
                raise ValueError(f"{key!r} is a key of TorchRL's own: give that part another name")
        self._observed = observed
        self._action = converter_of(self.vector.single_action_space, "action", is_categorical)
        flag = Categorical(2, (1,), dtype=torch.bool)
        self.observation_spec = self._batched({key: each.spec for key, each in observed.items()})
        self.full_action_spec = self._batched({"action": self._action.spec})
        self.full_reward_spec = self._batched({"reward": Unbounded((1,))})
        self.full_done_spec = self._batched({name: flag.clone() for name in _FLAGS})

    def _batched(self, specs: dict[str, Any]) -> Composite:
        composite = Composite(specs).expand(self.batch_size)
        return composite if self.device is None else composite.to(self.device)

    def _step(self, tensordict: TensorDictBase) -> TensorDictBase:
        chosen = tensordict.get("_step", None)
        if chosen is None:
            return self._stepped(self._slots.step(self._action.decode(tensordict["action"])))
        chosen = chosen.reshape(self.batch_size)
        actions = self._action.decode(tensordict["action"][chosen])
        result: TensorDictBase = self._skip_tensordict(tensordict)
        result[chosen] = self._stepped(self._slots.step(actions, _numbers(chosen)))
        return result

    def _reset(
        self,
        tensordict: TensorDictBase | None = None,
        seed: Seed = None,
        options: dict[str, Any] | None = None,
    ) -> TensorDictBase:
        chosen = None if tensordict is None else tensordict.get("_reset", None)
        slots = None if chosen is None else _numbers(chosen.reshape(self.batch_size))
        seeds = None if seed is None else self._seeds(seed)
        observations, infos = self._slots.reset(slots, seeds, options)
        observed = self._loaded(self._observations(observations, (infos, None), self.num_envs))
        return self._tensordict(self._encoded(observed), self.num_envs)

    def _stepped(self, batch: Batch) -> TensorDictBase:
        rows = len(batch.slots)
        observed, rewards, terminated, truncated = self._loaded(
            (
                self._observations(batch.observations, batch.infos, rows),
                batch.rewards,
                batch.terminated,
                batch.truncated,
            )
        )
        entries = self._encoded(observed)
        entries["reward"] = rewards.to(torch.float32).unsqueeze(1)
        entries["terminated"] = terminated.unsqueeze(1)
        entries["truncated"] = truncated.unsqueeze(1)
        entries["done"] = entries["terminated"] | entries["truncated"]
        return self._tensordict(entries, rows)

    def _observations(
        self, observations: Any, infos: RawInfos | ColumnInfos | None, rows: int
    ) -> dict[str, Any]:
        """What is observed, and the infos that are wanted, as arrays by their keys."""
        parts = observations if self._has_parts else {"observation": observations}
        return {**parts, **self._infos.of(infos, rows)}

    def _encoded(self, observed: dict[str, Any]) -> dict[str, Any]:
        return {key: each.encode(observed[key]) for key, each in self._observed.items()}

    def _tensordict(self, entries: dict[str, Any], rows: int) -> TensorDictBase:
        return TensorDict(entries, batch_size=(rows,), device=self.device)

    def _set_seed(self, seed: int | None) -> None:
        self._slots.begin(self._seeds(seed))

    def _seeds(self, seed: Seed) -> list[int | None]:
        return slot_seeds(seed, self.num_envs, self._seeding)

    def to(self, device: torch.device | str | int) -> ShoalEnv:
        """Bring tensors to another device from now on; the environments stay where they are."""
        super().to(device)
        self._loaded = tensor_loader(self.device)
        return self

    def close(self, *, raise_if_closed: bool = True) -> None:  # noqa: ARG002
        """Close the vector, and with it every environment; a second call does nothing."""
        self.is_closed = True
        self.vector.close()
        self._pool.close()

    def __del__(self) -> None:
        """Leave the vector to whoever has made it: it ends with its own last reference."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.vector}, device={self.device})"


def _numbers(chosen: torch.Tensor) -> npt.NDArray[np.int64]:
    numbers: npt.NDArray[np.int64] = chosen.cpu().nonzero().flatten().numpy()
    return numbers
