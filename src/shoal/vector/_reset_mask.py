"""Validation of ``options["reset_mask"]``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import ResetMaskError

__all__ = ["split_reset_mask"]

_KEY = "reset_mask"


def split_reset_mask(
    options: dict[str, Any] | None, num_envs: int
) -> tuple[npt.NDArray[np.bool_] | None, dict[str, Any] | None]:
    """Split the options into the mask, or None, and the options for the environments.

    The caller's dict is not modified.
    """
    if options is None or _KEY not in options:
        return None, options
    mask = options[_KEY]
    if not isinstance(mask, np.ndarray):
        raise ResetMaskError(
            f"`options['{_KEY}']` must be a numpy array, got {type(mask).__name__}"
        )
    if mask.shape != (num_envs,):
        raise ResetMaskError(
            f"`options['{_KEY}']` must have shape `({num_envs},)`, got {mask.shape}"
        )
    if mask.dtype != np.bool_:
        raise ResetMaskError(f"`options['{_KEY}']` must have `dtype=np.bool_`, got {mask.dtype}")
    if not mask.any():
        raise ResetMaskError(
            f"`options['{_KEY}']` must contain a boolean array with at least one True value, "
            f"got reset_mask={mask}"
        )
    return mask, {key: value for key, value in options.items() if key != _KEY}
