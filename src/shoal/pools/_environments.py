"""Opening and closing the environments of a pool, so that none is ever left open."""

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
"""What pools ask of an environment that is not derived from Gymnasium's class."""

Called = str | Callable[..., Any]
"""What a pool calls: the name of a method or attribute, or a function that takes the environment
first."""


@contextmanager
def naming_slot(slot: int, count: int, doing: str) -> Iterator[None]:
    """Add to any exception which slot it came from and what was being done."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"shoal: in slot {slot} of {count}, {doing}")
        raise


def open_environments(
    factories: Sequence[EnvFactory], first: int = 0, count: int | None = None
) -> list[Env[Any, Any]]:
    """Build one environment from each factory; if one fails, close those before it.

    ``first`` is the slot of the first one, and ``count`` how many slots the vector has in all.

    Raises:
        NotAnEnvironmentError: A factory has made something else.
        ValueError: Two factories have made the same environment.
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
    """What to say to someone who gives an environment where one is to be made."""
    what = "a function that makes it"
    if env.spec is not None:
        what = f"its id, {env.spec.id!r}"
    elif env is env.unwrapped:
        what = f"its class, {type(env).__name__}"
    return (
        f"got the environment {env}: pass {what}, since each slot needs an environment of its own"
    )


def _check_environment(env: object) -> None:
    """Refuse what is no environment, and nothing that can do what one can."""
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
    """Close every environment, also after one has failed to; then raise the first failure.

    Without ``reporting``, failures are dropped: for use while another exception is on its way.
    """
    total = len(envs) if count is None else count
    failure: BaseException | None = None
    for slot, env in enumerate(envs, first):
        try:
            with naming_slot(slot, total, "closing the environment"):
                env.close()
        except BaseException as error:  # also Ctrl-C: the others must be closed all the same
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

    It ends with the first that fails. ``envs`` is by slot, and ``count`` how many slots the vector
    has in all.
    """
    results: list[Any] = []
    name = what if isinstance(what, str) else what.__name__
    try:
        for slot, env in envs.items():
            with naming_slot(slot, count, f"calling {name!r}"):
                if not isinstance(what, str):
                    results.append(what(env, *args, **kwargs))
                    continue
                found = env.get_wrapper_attr(what)
                results.append(found(*args, **kwargs) if callable(found) else found)
    except BaseException as error:
        return results, error
    return results, None


def checked_factories(factories: Iterable[EnvFactory]) -> list[EnvFactory]:
    """The factories of a vector as a list, of which there must be one at least."""
    recipes = list(factories)
    if not recipes:
        raise ValueError("a vector needs at least one environment, got none")
    return recipes


def check_wrappers(wrappers: Sequence[EnvWrapper] | None) -> None:
    """Refuse what is no sequence of functions, before anything is built."""
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
