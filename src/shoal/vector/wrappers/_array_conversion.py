"""Vectors that speak the arrays of another library.

This module needs Gymnasium's extra ``array-api``; importing it is what raises where it is missing.
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

__all__ = ["ArrayConversion", "JaxToNumpy", "JaxToTorch", "NumpyToTorch", "tensors_of_infos"]

Vector = gymnasium.vector.VectorEnv[Any, Any, Any]

_NUMERIC_KINDS = "biufc"


class ArrayConversion(VectorWrapper):
    """Takes and gives arrays of one library for a vector that uses another one.

    Observations, rewards, flags and infos are converted, actions and options the other way. Arrays
    share their memory where both libraries can. What has no counterpart, such as text in infos,
    stays as it is; an array of objects, such as ``final_obs``, gets converted entries.

    Args:
        env: The vector to wrap.
        env_xp: The library of the vector, a module such as ``numpy``.
        target_xp: The library to convert to, a module such as ``torch``.
        env_device: Where the vector's arrays are.
        target_device: Where the converted arrays are to be.
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
        """Reset the wrapped vector, with converted options, and convert what it returns."""
        own_options = _converted(options, self._env_xp, self._env_device)
        observations, infos = self.env.reset(seed=seed, options=own_options)  # type: ignore[arg-type]
        return self._to_target(observations), self._to_target(infos)

    def step(self, actions: Any) -> Step:
        """Step the wrapped vector with converted actions, and convert what it returns."""
        result = self.env.step(_converted(actions, self._env_xp, self._env_device))
        observations, rewards, terminated, truncated, infos = map(self._to_target, result)
        return observations, rewards, terminated, truncated, infos

    def _to_target(self, value: Any) -> Any:
        return _converted(value, self._target_xp, self._target_device)


class JaxToNumpy(ArrayConversion):
    """NumPy arrays for a vector that uses JAX.

    Args:
        env: The vector to wrap.
    """

    def __init__(self, env: Vector) -> None:
        super().__init__(env, env_xp=_jax(), target_xp=np)


class JaxToTorch(ArrayConversion):
    """PyTorch tensors for a vector that uses JAX.

    Args:
        env: The vector to wrap.
        device: Where the tensors are to be.
    """

    def __init__(self, env: Vector, device: Any = None) -> None:
        super().__init__(env, env_xp=_jax(), target_xp=_torch(), target_device=device)
        self.device = device


class NumpyToTorch(ArrayConversion):
    """PyTorch tensors for a vector that uses NumPy.

    Args:
        env: The vector to wrap.
        device: Where the tensors are to be.

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


def tensors_of_infos(infos: Any, device: Any = None) -> Any:
    """Infos of any form with PyTorch tensors in the place of numbers and arrays."""
    return _converted(infos, _torch(), device)


def _converted(value: Any, xp: ModuleType, device: Any) -> Any:
    """A value with all arrays and numbers in it as arrays of a library."""
    if isinstance(value, dict):
        return {key: _converted(part, xp, device) for key, part in value.items()}
    if isinstance(value, np.ndarray) and value.dtype == object:
        entries = np.empty_like(value)
        for place, entry in np.ndenumerate(value):
            entries[place] = _converted(entry, xp, device)
        return entries
    if hasattr(value, "_make"):  # a named tuple, such as a graph
        return value._make(_converted(part, xp, device) for part in value)
    if isinstance(value, list | tuple):
        return type(value)(_converted(part, xp, device) for part in value)
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
        raise DependencyNotInstalled("JAX is missing: pip install 'gymnasium[jax]'") from error


def _torch() -> ModuleType:
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise DependencyNotInstalled("PyTorch is missing: pip install torch") from error
