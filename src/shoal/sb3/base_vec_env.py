"""Stable-Baselines3's ``VecEnv`` interface, and the base class of wrappers."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import gymnasium
import numpy.typing as npt
from gymnasium import spaces
from stable_baselines3.common.vec_env import base_vec_env as original
from stable_baselines3.common.vec_env.base_vec_env import (
    CloudpickleWrapper,
    VecEnv,
    VecEnvIndices,
    VecEnvObs,
    VecEnvStepReturn,
)

__all__ = [
    "CloudpickleWrapper",
    "VecEnv",
    "VecEnvIndices",
    "VecEnvObs",
    "VecEnvStepReturn",
    "VecEnvWrapper",
    "counterpart_of",
]

Info = dict[str, Any]
Vector = TypeVar("Vector", bound=VecEnv)


_counterparts: dict[type, type] = {}


class CounterpartMeta(ABCMeta):
    """Metaclass for ``isinstance`` checks that also accept instances of the counterpart."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or isinstance(
            instance, _counterparts.get(cls, ())
        )


def counterpart_of(original_class: Any) -> Callable[[type[Vector]], type[Vector]]:
    """Register a class as a virtual subclass of the class of Stable-Baselines3 that it replaces.

    Stable-Baselines3's ``isinstance`` checks then accept instances of the decorated class.
    """

    def register(own_class: type[Vector]) -> type[Vector]:
        original_class.register(own_class)
        _counterparts[own_class] = original_class
        return own_class

    return register


@counterpart_of(original.VecEnvWrapper)
class VecEnvWrapper(VecEnv, metaclass=CounterpartMeta):
    """Wraps a vector and forwards everything that it does not change.

    Attributes that a wrapper does not have are looked up in the wrapped vectors. A name that
    several of them have is ambiguous and raises an AttributeError.

    Args:
        venv: The vector to wrap.
        observation_space: The observation space of one environment, if it differs from the wrapped
            vector's.
        action_space: The action space of one environment, if it differs from the wrapped vector's.
    """

    venv: VecEnv

    def __init__(
        self,
        venv: VecEnv,
        observation_space: spaces.Space[Any] | None = None,
        action_space: spaces.Space[Any] | None = None,
    ) -> None:
        self.venv = venv
        self.num_envs = venv.num_envs
        self.observation_space = (
            venv.observation_space if observation_space is None else observation_space
        )
        self.action_space = venv.action_space if action_space is None else action_space
        # Custom vectors may not have called the constructor of VecEnv.
        self.render_mode = getattr(venv, "render_mode", None)
        self.metadata = {"render_modes": _render_modes(self.render_mode)}

    @property
    def reset_infos(self) -> list[Info]:
        """The infos of each environment's last reset."""
        return self.venv.reset_infos

    @reset_infos.setter
    def reset_infos(self, infos: list[Info]) -> None:
        self.venv.reset_infos = infos

    def step_async(self, actions: npt.NDArray[Any]) -> None:
        """Start to step every environment."""
        self.venv.step_async(actions)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Set the seeds of the next reset, counting up from ``seed``."""
        return self.venv.seed(seed)

    def set_options(self, options: list[Info] | Info | None = None) -> None:
        """Set the options of the next reset: one dict for all environments, or one for each."""
        self.venv.set_options(options)

    def close(self) -> None:
        """Close every environment."""
        self.venv.close()

    def render(self, mode: str | None = None) -> npt.NDArray[Any] | None:
        """Render all environments as one image, or in windows."""
        return self.venv.render(mode=mode)

    def get_images(self) -> Sequence[npt.NDArray[Any] | None]:
        """Render each environment."""
        return self.venv.get_images()

    def has_attr(self, attr_name: str) -> bool:
        """Whether every environment has this attribute."""
        return self.venv.has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Read an attribute of each environment."""
        return self.venv.get_attr(attr_name, indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of each environment."""
        self.venv.set_attr(attr_name, value, indices)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of each environment."""
        return self.venv.env_method(method_name, *method_args, indices=indices, **method_kwargs)

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """Whether each environment has a wrapper of this class."""
        return self.venv.env_is_wrapped(wrapper_class, indices=indices)

    def __getattr__(self, name: str) -> Any:
        # While the wrapper is being copied or unpickled, it has no vector yet.
        if name.startswith("__") or "venv" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        hidden = self.getattr_depth_check(name, already_found=False)
        if hidden is not None:
            raise AttributeError(
                f"{name!r} of {_name(self)} is ambiguous: several of the wrapped vectors have it, "
                f"among them {hidden}"
            )
        return self.getattr_recursive(name)

    def getattr_recursive(self, name: str) -> Any:
        """Read an attribute of this wrapper, or of the outermost wrapped vector that has it."""
        if self._has(name):
            return getattr(self, name)
        if hasattr(self.venv, "getattr_recursive"):
            return self.venv.getattr_recursive(name)
        return getattr(self.venv, name)

    def getattr_depth_check(self, name: str, already_found: bool) -> str | None:
        """Return the class of the vector whose attribute is hidden by an outer one, or None."""
        has_attribute = self._has(name)
        if has_attribute and already_found:
            return _name(self)
        return self.venv.getattr_depth_check(name, already_found or has_attribute)

    def _has(self, name: str) -> bool:
        return name in vars(self) or any(name in vars(base) for base in type(self).__mro__)


def _name(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__name__}"


def _render_modes(mode: str | None) -> list[str]:
    """Return the supported render modes; images can also be shown in a window."""
    if mode is None:
        return []
    return ["human", "rgb_array"] if mode == "rgb_array" else [mode]
