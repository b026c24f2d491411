"""Stable-Baselines3's interface, and the base of the wrappers around it."""

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
    "stands_in_for",
]

Info = dict[str, Any]
Vector = TypeVar("Vector", bound=VecEnv)


_counterparts: dict[type, type] = {}


class OfEitherLibrary(ABCMeta):
    """The type of classes whose instances include those of the class that they stand in for."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or isinstance(
            instance, _counterparts.get(cls, ())
        )


def stands_in_for(counterpart: Any) -> Callable[[type[Vector]], type[Vector]]:
    """Make a class pass for one of Stable-Baselines3's, which looks for its own by isinstance."""

    def registered(own: type[Vector]) -> type[Vector]:
        counterpart.register(own)
        _counterparts[own] = counterpart
        return own

    return registered


@stands_in_for(original.VecEnvWrapper)
class VecEnvWrapper(VecEnv, metaclass=OfEitherLibrary):
    """A vector around another one, which it changes in part.

    What a wrapper does not have itself is looked for in the vectors below it; a name that several
    of them have cannot be reached that way.

    Args:
        venv: The vector to wrap.
        observation_space: The space of one environment's observations, if it is another one.
        action_space: The space of one environment's actions, if it is another one.
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
        # A vector of somebody else's need not have called the constructor of its class.
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
        """Begin to step every environment."""
        self.venv.step_async(actions)

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        """Choose the seeds of the next reset: this one, and those that follow it."""
        return self.venv.seed(seed)

    def set_options(self, options: list[Info] | Info | None = None) -> None:
        """Choose the options of the next reset, the same for all or one dict for each."""
        self.venv.set_options(options)

    def close(self) -> None:
        """Close every environment."""
        self.venv.close()

    def render(self, mode: str | None = None) -> npt.NDArray[Any] | None:
        """Render all environments as one picture, or each in its window."""
        return self.venv.render(mode=mode)

    def get_images(self) -> Sequence[npt.NDArray[Any] | None]:
        """A picture of each environment."""
        return self.venv.get_images()

    def has_attr(self, attr_name: str) -> bool:
        """Whether every environment has this attribute."""
        return self.venv.has_attr(attr_name)

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """An attribute of each of these environments."""
        return self.venv.get_attr(attr_name, indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of each of these environments."""
        self.venv.set_attr(attr_name, value, indices)

    def env_method(
        self,
        method_name: str,
        *method_args: Any,
        indices: VecEnvIndices = None,
        **method_kwargs: Any,
    ) -> list[Any]:
        """Call a method of each of these environments."""
        return self.venv.env_method(method_name, *method_args, indices=indices, **method_kwargs)

    def env_is_wrapped(
        self,
        wrapper_class: type[gymnasium.Wrapper[Any, Any, Any, Any]],
        indices: VecEnvIndices = None,
    ) -> list[bool]:
        """Whether a wrapper of this class is around each of these environments."""
        return self.venv.env_is_wrapped(wrapper_class, indices=indices)

    def __getattr__(self, name: str) -> Any:
        # A copy in the making has no vector yet, and is asked for special methods.
        if name.startswith("__") or "venv" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        hidden = self.getattr_depth_check(name, already_found=False)
        if hidden is not None:
            raise AttributeError(
                f"{name!r} of {_name(self)} is ambiguous: several of the vectors below have it, "
                f"and it would hide that of {hidden}"
            )
        return self.getattr_recursive(name)

    def getattr_recursive(self, name: str) -> Any:
        """An attribute of this wrapper, or of the first vector below that has it."""
        if self._has(name):
            return getattr(self, name)
        if hasattr(self.venv, "getattr_recursive"):
            return self.venv.getattr_recursive(name)
        return getattr(self.venv, name)

    def getattr_depth_check(self, name: str, already_found: bool) -> str | None:
        """The class of a vector whose attribute of this name is hidden by one above it, if any."""
        found = self._has(name)
        if found and already_found:
            return _name(self)
        return self.venv.getattr_depth_check(name, already_found or found)

    def _has(self, name: str) -> bool:
        return name in vars(self) or any(name in vars(base) for base in type(self).__mro__)


def _name(thing: object) -> str:
    return f"{type(thing).__module__}.{type(thing).__name__}"


def _render_modes(mode: str | None) -> list[str]:
    """What a vector can show: pictures also in a window."""
    if mode is None:
        return []
    return ["human", "rgb_array"] if mode == "rgb_array" else [mode]
