"""From what a user has to an environment of TorchRL."""

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
    """Make a vector of environments, and put TorchRL's interface on it.

    Args:
        what: As :func:`shoal.make` takes it: an id, a kernel, a function, or a list of functions.
        num_envs: How many; 1 by default.
        device: See :class:`ShoalEnv`, as for the next two.
        categorical_action_encoding: See there.
        infos: See there.
        autoreset_mode: How the vector resets slots. TorchRL says itself when a slot is reset, so
            nothing is gained by another mode, unless resets are far away: with SAME_STEP they need
            no call of their own.
        **options: What else :func:`shoal.make` takes.

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
