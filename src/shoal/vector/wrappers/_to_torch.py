"""A vector that speaks tensors of PyTorch."""

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
    """Gives tensors of PyTorch, and takes actions as tensors, wherever they are.

    Observations, rewards and flags are tensors. On the CPU they share the memory of the vector's
    arrays: with the vectors of :func:`shoal.make` they are yours to keep and to change, or, with
    its ``copy=False``, valid until the batch after next. To a CUDA device they travel through
    pinned memory, asynchronously. Rewards keep their dtype, which is float64. What is not numeric
    in observations stays as it is.

    Args:
        env: The vector to wrap, any of Gymnasium's interface. The wrapper also has ``send`` and
            ``recv`` if the vector itself has them.
        device: Where the tensors are to be; None for the CPU.
        infos: Whether numbers and arrays in infos become tensors as well, ``final_obs`` among them;
            this needs Gymnasium's extra ``array-api``.

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
        self._loaded = tensors.tensor_loader(device)
        self._arrays_of = tensors.arrays_of
        self._converts_infos = infos
        if infos:
            from shoal.vector.wrappers._array_conversion import tensors_of_infos

            self._tensors_of_infos = tensors_of_infos

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector; ``options["reset_mask"]`` may be a tensor."""
        _, observations, infos = self._reset_slots(seed, self._arrays_of(options))
        return self._loaded(observations), self._converted(infos)

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector."""
        *results, infos = self.env.step(self._arrays_of(actions))
        observations, rewards, terminated, truncated = self._loaded(tuple(results))
        return observations, rewards, terminated, truncated, self._converted(infos)

    def send(self, actions: Any, slots: SlotChoice = None) -> None:
        """Begin to step these slots, all of them by default, with one action for each."""
        self._method_of_env("send")(self._arrays_of(actions), self._arrays_of(slots))

    def recv(
        self,
        min_slots: int | None = None,
        timeout: float | None = None,
        *,
        slots: SlotChoice = None,
    ) -> Batch:
        """Receive slots that were sent; see :meth:`shoal.vector.VectorEnv.recv`.

        The batch's ``slots`` are still an array, as ``send`` takes them.
        """
        batch: Batch = self._method_of_env("recv")(min_slots, timeout, slots=self._arrays_of(slots))
        observations, rewards, terminated, truncated = self._loaded(tuple(batch[1:5]))
        infos = self._converted(batch.infos)
        return Batch(batch.slots, observations, rewards, terminated, truncated, infos)

    def _converted(self, infos: Any) -> Any:
        return self._tensors_of_infos(infos, self.device) if self._converts_infos else infos
