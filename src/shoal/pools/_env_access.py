"""Functions that frontends pass to a pool's ``call`` to access attributes of environments."""

from __future__ import annotations

from typing import Any

import gymnasium

__all__ = [
    "ClassName",
    "call_method",
    "class_name",
    "get_attribute",
    "has_attribute",
    "is_wrapped",
    "set_attribute",
]

Env = gymnasium.Env[Any, Any]

ClassName = tuple[str, str]
"""The module and the qualified name of a class."""


def class_name(kind: type) -> ClassName:
    """Return the name that identifies a class in another process."""
    return kind.__module__, kind.__qualname__


def get_attribute(env: Env, name: str) -> Any:
    """Return an attribute of the environment or its wrappers; methods are not called."""
    return env.get_wrapper_attr(name)


def has_attribute(env: Env, name: str) -> bool:
    """Whether the environment or one of its wrappers has this attribute."""
    return bool(env.has_wrapper_attr(name))


def call_method(env: Env, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of the environment or its wrappers."""
    return env.get_wrapper_attr(name)(*args, **kwargs)


def set_attribute(env: Env, name: str, value: Any, ignored: ClassName | None = None) -> None:
    """Set an attribute of the outermost wrapper that has it, or of the environment.

    A new attribute is only set on an environment without wrappers: otherwise the outermost wrapper
    would get it, where the environment cannot see it.

    Args:
        env: The environment.
        name: The attribute's name.
        value: Its value.
        ignored: The class of a wrapper that does not count as a wrapper here.

    Raises:
        AttributeError: The environment has wrappers, and the attribute does not exist.
    """
    inner: Any = env
    while isinstance(inner, gymnasium.Wrapper) and class_name(type(inner)) == ignored:
        inner = inner.env
    if isinstance(inner, gymnasium.Wrapper) and not env.has_wrapper_attr(name):
        raise AttributeError(
            f"cannot set {name!r}: neither the environment {type(env.unwrapped).__name__} nor one "
            "of its wrappers has an attribute of this name"
        )
    env.set_wrapper_attr(name, value)


def is_wrapped(env: Env, wanted: ClassName) -> bool:
    """Whether the environment has a wrapper of the class with this name.

    The class is given by name, so that a worker need not import it.
    """
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if any(class_name(kind) == wanted for kind in type(layer).mro()):
            return True
        layer = layer.env
    return False
