"""Wrappers that convert between the arrays of different libraries.

This module needs Gymnasium's extra ``array-api``; without it, importing the module fails.
"""

from __future__ import annotations

import importlib
from numbers import Number
from types import ModuleType
from typing import Any

import gymnasium.vector
import numpy as np
from array_api_compat import is_array_api_obj
from gymnasium.error import DependencyNotInstalled
from gymnasium.wrappers.array_conversion import array_conversion

from shoal.vector._seeding import Seed
from shoal.vector.wrappers._base import Step, VectorWrapper

__all__ = ["ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch", "infos_to_torch"]

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]

_NUMERIC_KINDS = "biufc"


class ArrayConversion(VectorWrapper):
    """Converts the arrays of a vector to another library.

    Observations, rewards, flags and infos are converted to the target library, actions and options
    to the library of the vector. Arrays share their memory if both libraries support it. Values
    that are not numeric, such as text in infos, are left unchanged. In an array of objects, such as
    ``final_obs``, each entry is converted.

    Args:
        env: The vector to wrap.
        env_xp: The library of the vector, a module such as ``numpy``.
        target_xp: The target library, a module such as ``torch``.
        env_device: The device of the vector's arrays.
        target_device: The device of the converted arrays.
    """

    def __init__(
        self,
        env: Vector,
        env_xp: ModuleType,
        target_xp: ModuleType,
        env_device: Any = None,
        target_device: Any = None,
    ) -> None:
        super().__init__(env)
        self._env_xp = env_xp
        self._target_xp = target_xp
        self._env_device = env_device
        self._target_device = target_device

    def reset(self, *, seed: Seed = None, options: dict[str, Any] | None = None) -> tuple[Any, Any]:
        """Reset the wrapped vector with converted options, and convert the results."""
        env_options = _convert(options, self._env_xp, self._env_device)
        observations, infos = self.env.reset(seed=seed, options=env_options)  # type: ignore[arg-type]
        return self._to_target(observations), self._to_target(infos)

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector with converted actions, and convert the results."""
        result = self.env.step(_convert(actions, self._env_xp, self._env_device))
        observations, rewards, terminated, truncated, infos = map(self._to_target, result)
        return observations, rewards, terminated, truncated, infos

    def _to_target(self, value: Any) -> Any:
        return _convert(value, self._target_xp, self._target_device)


class JaxToNumpy(ArrayConversion):
    """Converts the arrays of a JAX vector to NumPy.

    Args:
        env: The vector to wrap.
    """

    def __init__(self, env: Vector) -> None:
        super().__init__(env, env_xp=_jax(), target_xp=np)


class JaxToTorch(ArrayConversion):
    """Converts the arrays of a JAX vector to PyTorch tensors.

    Args:
        env: The vector to wrap.
        device: The device of the tensors.
    """

    def __init__(self, env: Vector, device: Any = None) -> None:
        super().__init__(env, env_xp=_jax(), target_xp=_torch(), target_device=device)
        self.device = device


class NumpyToTorch(ArrayConversion):
    """Converts the arrays of a NumPy vector to PyTorch tensors.

    Args:
        env: The vector to wrap.
        device: The device of the tensors.

    Example:
        >>> import shoal, torch
        >>> with NumpyToTorch(shoal.make("CartPole-v1", num_envs=2, backend="inline")) as envs:
        ...     _ = envs.reset(seed=0)
        ...     envs.step(torch.tensor([0, 1]))[1]
        tensor([1., 1.], dtype=torch.float64)
    """

    def __init__(self, env: Vector, device: Any = None) -> None:
        super().__init__(env, env_xp=np, target_xp=_torch(), target_device=device)
        self.device = device


def infos_to_torch(infos: Any, device: Any = None) -> Any:
    """Convert numbers and arrays in infos of any format to PyTorch tensors."""
    return _convert(infos, _torch(), device)


def _convert(value: Any, xp: ModuleType, device: Any) -> Any:
    """Convert all arrays and numbers in a nested value to arrays of a library."""
    if isinstance(value, dict):
        return {key: _convert(part, xp, device) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        entries = np.empty_like(value)
        for index, entry in np.ndenumerate(value):
            entries[index] = _convert(entry, xp, device)
        return entries
    if hasattr(value, "_make"):  # a named tuple, such as a graph
        return value._make(_convert(part, xp, device) for part in value)
    if isinstance(value, list | tuple):
        return type(value)(_convert(part, xp, device) for part in value)
    if isinstance(value, np.generic):
        value = np.asarray(value)
    return array_conversion(value, xp, device) if _is_numeric(value) else value


def _is_numeric(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in _NUMERIC_KINDS
    return isinstance(value, Number) or is_array_api_obj(value)


def _jax() -> ModuleType:
    try:
        return importlib.import_module("jax.numpy")
    except ImportError as error:
        raise DependencyNotInstalled(
            "JAX is not installed: pip install 'gymnasium[jax]'"
        ) from error


def _torch() -> ModuleType:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise DependencyNotInstalled("PyTorch is not installed: pip install torch") from error
