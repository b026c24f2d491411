"""Opening and closing the environments of a pool, so that none is ever left open."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from gymnasium import Env

__all__ = [
    "EnvFactory",
    "EnvWrapper",
    "close_environments",
    "naming_slot",
    "open_environments",
    "wrapped",
]

EnvFactory = Callable[[], Env[Any, Any]]
EnvWrapper = Callable[[Env[Any, Any]], Env[Any, Any]]


@contextmanager
def naming_slot(slot: int, count: int, doing: str) -> Iterator[None]:
    """Add to any exception which slot it came from and what was being done."""
    try:
        yield
    except BaseException as error:
        error.add_note(f"shoal: in slot {slot} of {count}, {doing}")
        raise


def open_environments(factories: Iterable[EnvFactory]) -> list[Env[Any, Any]]:
    """Build one environment from each factory; if one fails, close those before it."""
    recipes = list(factories)
    if not recipes:
        raise ValueError("a vector needs at least one environment, got none")
    envs: list[Env[Any, Any]] = []
    try:
        for slot, factory in enumerate(recipes):
            with naming_slot(slot, len(recipes), "building the environment"):
                if not callable(factory):
                    raise TypeError(
                        f"expected a function that makes an environment, got {factory!r}"
                    )
                envs.append(factory())
    except BaseException:
        close_environments(envs, reporting=False)
        raise
    return envs


def close_environments(envs: Sequence[Env[Any, Any]], *, reporting: bool = True) -> None:
    """Close every environment, also after one has failed to; then raise the first failure.

    Without ``reporting``, failures are dropped: for use while another exception is on its way.
    """
    first: BaseException | None = None
    for slot, env in enumerate(envs):
        try:
            with naming_slot(slot, len(envs), "closing the environment"):
                env.close()
        except BaseException as error:  # also Ctrl-C: the others must be closed all the same
            first = first or error
    if reporting and first is not None:
        raise first


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
