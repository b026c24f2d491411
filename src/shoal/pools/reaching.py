"""What doors do to environments, for a pool's ``call`` to do it where the environments are."""

from __future__ import annotations

from typing import Any

import gymnasium

__all__ = ["call_method", "get_attribute", "has_attribute", "is_wrapped", "set_attribute"]

Env = gymnasium.Env[Any, Any]


def get_attribute(env: Env, name: str) -> Any:
    """An attribute of the environment or of the wrappers around it; methods are not called."""
    return env.get_wrapper_attr(name)


def has_attribute(env: Env, name: str) -> bool:
    """Whether the environment or one of the wrappers around it has this attribute."""
    return bool(env.has_wrapper_attr(name))


def call_method(env: Env, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of the environment or of the wrappers around it."""
    return env.get_wrapper_attr(name)(*args, **kwargs)


def set_attribute(env: Env, name: str, value: Any) -> None:
    """Set an attribute where it is: in the outermost wrapper that has it, or in the environment.

    An environment without wrappers takes a new one. With wrappers, a new attribute would be the
    outermost one's, and the environment would never know of it.
    """
    if not env.has_wrapper_attr(name) and isinstance(env, gymnasium.Wrapper):
        raise AttributeError(
            f"cannot set {name!r}: neither the environment {type(env.unwrapped).__name__} nor one "
            "of the wrappers around it has an attribute of this name"
        )
    env.set_wrapper_attr(name, value)


def is_wrapped(env: Env, module: str, name: str) -> bool:
    """Whether a wrapper of the class of this (qualified) name is around the environment.

    By its name, and not by the class itself: a worker that has none of these wrappers need not
    import what they come with.
    """
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if any(
            (kind.__module__, kind.__qualname__) == (module, name) for kind in type(layer).mro()
        ):
            return True
        layer = layer.env
    return False
