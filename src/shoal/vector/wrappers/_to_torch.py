"""A wrapper that converts between NumPy arrays and PyTorch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium.vector

from shoal.errors import MissingExtraError
from shoal.pools._base import Batch, SlotChoice
from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import Step, VectorWrapper

if TYPE_CHECKING:
    import torch

__all__ = ["ToTorch"]


class ToTorch(VectorWrapper):
    """Returns PyTorch tensors, and accepts actions as tensors on any device.

    Observations, rewards and flags are tensors. On the CPU they share the memory of the vector's
    arrays. For vectors of :func:`shoal.make` these are new arrays in every step or, with
    ``copy=False``, views that stay valid until the batch after next. To a CUDA device they are
    copied asynchronously through pinned memory. Rewards keep their dtype, which is float64. Parts
    of observations that are not numeric are left unchanged.

    Args:
        env: The vector to wrap, any ``gymnasium.vector.VectorEnv``. ``send`` and ``recv`` are
            available if the vector has them.
        device: The device of the tensors; None for the CPU.
        infos: Whether numbers and arrays in infos, including ``final_obs``, are converted as well.
            This needs Gymnasium's extra ``array-api``.

    Example:
        >>> import shoal, torch
        >>> with ToTorch(shoal.make("CartPole-v1", num_envs=2)) as envs:
        ...     observations, infos = envs.reset(seed=42)
        ...     observations, rewards, *_ = envs.step(torch.tensor([0, 1]))
        ...     rewards
        tensor([1., 1.], dtype=torch.float64)
    """

    def __init__(
        self,
        env: gymnasium.vector.VectorEnv[Any, Any, Any],
        device: torch.device | str | int | None = None,
        *,
        infos: bool = False,
    ) -> None:
        try:
            from shoal._wrapper_core import tensors
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise MissingExtraError("PyTorch is not installed: pip install torch") from error
        super().__init__(env)
        self.device = device
        self._to_tensors = tensors.tensor_loader(device)
        self._to_arrays = tensors.to_arrays
        self._converts_infos = infos
        if infos:
            from shoal.vector.wrappers._array_conversion import infos_to_torch

            self._infos_to_torch = infos_to_torch

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector; ``options["reset_mask"]`` may be a tensor."""
        _, observations, infos = self._reset_slots(seed, self._to_arrays(options))
        return self._to_tensors(observations), self._convert_infos(infos)

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector."""
        *results, infos = self.env.step(self._to_arrays(actions))
        observations, rewards, terminated, truncated = self._to_tensors(tuple(results))
        return observations, rewards, terminated, truncated, self._convert_infos(infos)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Start to step slots, all by default, with one action for each."""
        self._method_of_env("send")(self._to_arrays(actions), self._to_arrays(slots))

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        slots: SlotChoice = None,
    ) -> Batch:
        """Receive slots that were sent; see :meth:`shoal.vector.VectorEnv.recv`.

        The batch's ``slots`` remain a NumPy array.
        """
        batch: Batch = self._method_of_env("recv")(min_slots, timeout, slots=self._to_arrays(slots))
        observations, rewards, terminated, truncated = self._to_tensors(tuple(batch[1:5]))
        infos = self._convert_infos(batch.infos)
        return Batch(batch.slots, observations, rewards, terminated, truncated, infos)

    def _convert_infos(self, infos: Any) -> Any:
        return self._infos_to_torch(infos, self.device) if self._converts_infos else infos
