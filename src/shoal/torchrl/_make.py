"""``make``: creation of TorchRL environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from gymnasium import Space
from gymnasium.vector import AutoresetMode

from shoal._make import make as make_vector
from shoal.torchrl._env import ShoalEnv

__all__ = ["make"]


def make(
    what: Any,
    num_envs: int | None = None,
    *,
    device: torch.device | str | int | None = None,
    categorical_action_encoding: bool = False,
    infos: Mapping[str, Space[Any]] | None = None,
    autoreset_mode: AutoresetMode | str = AutoresetMode.DISABLED,
    **options: Any,
) -> ShoalEnv:
    """Create a vector of environments with TorchRL's interface.

    Args:
        what: An argument of :func:`shoal.make`: an id, a kernel, a function or a list of functions.
        num_envs: Number of environments; 1 by default.
        device: See :class:`ShoalEnv`.
        categorical_action_encoding: See :class:`ShoalEnv`.
        infos: See :class:`ShoalEnv`.
        autoreset_mode: How the vector resets slots. TorchRL requests resets itself, so the default
            is best for local environments. With SAME_STEP, resets of a remote vector need no
            separate round trip.
        **options: Other options of :func:`shoal.make`.

    Example:
        >>> env = make("Pendulum-v1", num_envs=4, device="cpu")
        >>> env.action_spec.shape
        torch.Size([4, 1])
        >>> env.close()
    """
    vector = make_vector(what, num_envs, autoreset_mode=autoreset_mode, **options)
    try:
        return ShoalEnv(
            vector,
            device=device,
            categorical_action_encoding=categorical_action_encoding,
            infos=infos,
        )
    except BaseException:
        vector.close()
        raise
