"""What frontends do to environments, for a pool's ``call`` to do it where the environments are."""

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
    """The name by which a class is known in another process."""
    return kind.__module__, kind.__qualname__


def get_attribute(env: Env, name: str) -> Any:
    """An attribute of the environment or of the wrappers around it; methods are not called."""
    return env.get_wrapper_attr(name)


def has_attribute(env: Env, name: str) -> bool:
    """Whether the environment or one of the wrappers around it has this attribute."""
    return bool(env.has_wrapper_attr(name))


def call_method(env: Env, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call a method of the environment or of the wrappers around it."""
    return env.get_wrapper_attr(name)(*args, **kwargs)


def set_attribute(env: Env, name: str, value: Any, ignored: ClassName | None = None) -> None:
    """Set an attribute where it is: in the outermost wrapper that has it, or in the environment.

    An environment without wrappers takes a new one. With wrappers, a new attribute would be the
    outermost one's, and the environment would never know of it.

    Args:
        env: The environment.
        name: The attribute's name.
        value: Its value.
        ignored: The class of a wrapper that counts for none.
    """
    bare: Any = env
    while isinstance(bare, gymnasium.Wrapper) and class_name(type(bare)) == ignored:
        bare = bare.env
    if isinstance(bare, gymnasium.Wrapper) and not env.has_wrapper_attr(name):
        raise AttributeError(
            f"cannot set {name!r}: neither the environment {type(env.unwrapped).__name__} nor one "
            "of the wrappers around it has an attribute of this name"
        )
    env.set_wrapper_attr(name, value)


def is_wrapped(env: Env, wanted: ClassName) -> bool:
    """Whether a wrapper of the class of this name is around the environment.

    By its name, and not by the class itself: a worker that has none of these wrappers need not
    import what they come with.
    """
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if any(class_name(kind) == wanted for kind in type(layer).mro()):
            return True
        layer = layer.env
    return False
