"""Functions that open, call and close the environments of a pool."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from gymnasium import Env

from shoal.errors import NotAnEnvironmentError

__all__ = [
    "Called",
    "EnvFactory",
    "EnvWrapper",
    "call_environments",
    "check_wrappers",
    "checked_factories",
    "close_environments",
    "instead_of_object",
    "naming_slot",
    "open_environments",
    "wrapped",
]

EnvFactory = Callable[[], Env[Any, Any]]
EnvWrapper = Callable[[Env[Any, Any]], Env[Any, Any]]

_ATTRIBUTES = ("metadata", "render_mode", "observation_space", "action_space", "reset", "step")
"""Attributes that an environment must have if it is not derived from Gymnasium's class."""

Called = str | Callable[..., Any]
"""The name of a method or attribute, or a function that takes the environment first."""


@contextmanager
def naming_slot(slot: int, count: int, doing: str) -> Iterator[None]:
    """Add a note with the slot and the operation to any exception."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"shoal: in slot {slot} of {count}, {doing}")
        raise


def open_environments(
    factories: Sequence[EnvFactory], first: int = 0, count: int | None = None
) -> list[Env[Any, Any]]:
    """Build one environment from each factory; if one fails, close the others.

    Args:
        factories: One function for each environment.
        first: The slot of the first one.
        count: The number of slots of the vector; None for the number of factories.

    Raises:
        NotAnEnvironmentError: A factory has returned something else.
        ValueError: Two factories have returned the same environment.
    """
    total = len(factories) if count is None else count
    envs: list[Env[Any, Any]] = []
    slots: dict[int, int] = {}
    try:
        for slot, factory in enumerate(factories, first):
            with naming_slot(slot, total, "building the environment"):
                if isinstance(factory, Env):
                    raise TypeError(instead_of_object(factory))
                if not callable(factory):
                    raise TypeError(
                        f"expected a function that makes an environment, got {factory!r}"
                    )
                envs.append(factory())
                _check_environment(envs[-1])
                base = getattr(envs[-1], "unwrapped", None)
                other = slot if base is None else slots.setdefault(id(base), slot)
                if other != slot:
                    raise ValueError(
                        "the function to create this environment returned the same instance as "
                        f"that of slot {other} instead of creating a new one: replace "
                        "`lambda: env` by a function that makes an environment at every call"
                    )
    except BaseException:
        close_environments(envs, reporting=False)
        raise
    return envs


def instead_of_object(env: Env[Any, Any]) -> str:
    """Return the message for a user who passed an environment instead of a function."""
    expected = "a function that makes it"
    if env.spec is not None:
        expected = f"its id, {env.spec.id!r}"
    elif env is env.unwrapped:
        expected = f"its class, {type(env).__name__}"
    return f"got the environment {env}: pass {expected}, since each slot needs its own environment"


def _check_environment(env: object) -> None:
    """Raise NotAnEnvironmentError for an object that pools cannot use as an environment."""
    if isinstance(env, Env):
        return
    if env is None:
        raise NotAnEnvironmentError(
            "the function returned None, expected an environment: is a `return` missing?"
        )
    if isinstance(env, type):
        raise NotAnEnvironmentError(
            f"the function returned the class {env.__name__}, expected an environment: "
            f"`{env.__name__}()`"
        )
    if missing := [name for name in _ATTRIBUTES if not hasattr(env, name)]:
        raise NotAnEnvironmentError(
            f"{type(env).__name__} is no gymnasium.Env: it has no {', '.join(missing)}"
        )


def close_environments(
    envs: Sequence[Env[Any, Any]],
    first: int = 0,
    count: int | None = None,
    *,
    reporting: bool = True,
) -> None:
    """Close every environment, also if closing one fails; then raise the first failure.

    Without ``reporting``, failures are ignored, for use while another exception is handled.
    """
    total = len(envs) if count is None else count
    failure: BaseException | None = None
    for slot, env in enumerate(envs, first):
        try:
            with naming_slot(slot, total, "closing the environment"):
                env.close()
        except BaseException as error:  # also KeyboardInterrupt: the others must be closed
            failure = failure or error
    if reporting and failure is not None:
        raise failure


def call_environments(
    envs: Mapping[int, Env[Any, Any]],
    count: int,
    what: Called,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> tuple[list[Any], BaseException | None]:
    """Call a method of each environment, read an attribute, or call a function with each.

    Args:
        envs: The environments, by slot.
        count: The number of slots of the vector.
        what: The method, attribute or function.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Returns:
        The results up to the first failure, and the failure if there is one.
    """
    results: list[Any] = []
    name = what if isinstance(what, str) else what.__name__
    try:
        for slot, env in envs.items():
            with naming_slot(slot, count, f"calling {name!r}"):
                if not isinstance(what, str):
                    results.append(what(env, *args, **kwargs))
                    continue
                attribute = env.get_wrapper_attr(what)
                is_method = callable(attribute)
                results.append(attribute(*args, **kwargs) if is_method else attribute)
    except BaseException as error:
        return results, error
    return results, None


def checked_factories(factories: Iterable[EnvFactory]) -> list[EnvFactory]:
    """Return the factories as a list, after checking that there is at least one."""
    checked = list(factories)
    if not checked:
        raise ValueError("a vector needs at least one environment, got none")
    return checked


def check_wrappers(wrappers: Sequence[EnvWrapper] | None) -> None:
    """Raise TypeError unless wrappers are a sequence of functions."""
    if not wrappers:
        return
    if not isinstance(wrappers, Sequence) or not all(callable(wrapper) for wrapper in wrappers):
        raise TypeError(
            f"wrappers must be a sequence of wrappers, got {wrappers!r}: wrappers=[...], each of "
            "which takes an environment"
        )


def wrapped(factory: EnvFactory, wrappers: Sequence[EnvWrapper]) -> Env[Any, Any]:
    """Build an environment and put wrappers around it, the first one innermost."""
    env = factory()
    try:
        for wrapper in wrappers:
            env = wrapper(env)
    except BaseException:
        env.close()
        raise
    return env
