"""The recipe from which a worker process builds its environments."""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cloudpickle
from gymnasium import Space

from shoal.errors import FactoryPicklingError
from shoal.pools._environments import EnvFactory

__all__ = [
    "BuildResult",
    "Recipe",
    "UnpackResult",
    "pack_recipe",
    "unpack_recipe",
    "unpicklable",
]


@dataclass(frozen=True)
class Recipe:
    """The factories of one worker's environments, the first of which is in slot ``first``."""

    factories: Sequence[EnvFactory]
    first: int
    num_envs: int
    specs: Sequence[bytes]
    core: int | None
    threads: int | None


@dataclass(frozen=True)
class UnpackResult:
    """Whether a worker could unpickle its recipe."""

    error: BaseException | None = None


@dataclass(frozen=True)
class BuildResult:
    """The description of the environments that a worker has built, or the error."""

    spaces: Sequence[tuple[Space[Any], Space[Any]]] = ()
    metadata: dict[str, Any] | None = None
    render_mode: str | None = None
    error: BaseException | None = None


def pack_recipe(recipe: Recipe) -> bytes:
    """Pickle a recipe.

    Raises:
        FactoryPicklingError: A factory cannot be pickled. The message names the part that cannot.
    """
    # Factories that hold the proxy of a multiprocessing manager need its authentication key.
    key = bytes(multiprocessing.current_process().authkey)
    try:
        return pickle.dumps((key, cloudpickle.dumps(recipe)))
    except Exception as error:
        located = unpicklable(recipe.factories)
        if located is None:
            raise
        index, culprit = located
        raise FactoryPicklingError(
            f"the function that makes the environment of slot {recipe.first + index} cannot be "
            f"sent to a worker process, because {culprit} cannot be pickled ({error}). Create it "
            "inside the function, or use start='fork' or backend='thread'."
        ) from error


def unpicklable(factories: Sequence[EnvFactory]) -> tuple[int, str] | None:
    """Return the index of the first factory that cannot be pickled, and the part that cannot."""
    for index, factory in enumerate(factories):
        try:
            cloudpickle.dumps(factory)
        except Exception:
            return index, _find_culprit(factory) or repr(factory)
    return None


def unpack_recipe(pickled: bytes) -> Recipe:
    """Unpickle a recipe in the worker process."""
    multiprocessing.current_process().authkey, packed = pickle.loads(pickled)
    recipe: Recipe = pickle.loads(packed)
    return recipe


def _find_culprit(value: Any, prefix: str = "", depth: int = 4) -> str | None:
    """Describe the part of an object that cannot be pickled; None if every part can be."""
    for name, part in _parts(value):
        try:
            cloudpickle.dumps(part)
        except Exception:
            path = f"{prefix}{name}"
            deeper = _find_culprit(part, f"{path}: ", depth - 1) if depth else None
            return deeper or f"{path} ({type(part).__name__}: {part!r})"
    return None


def _parts(value: Any) -> list[tuple[str, Any]]:
    parts: list[tuple[str, Any]] = []
    function = getattr(value, "func", None)
    if function is not None:  # functools.partial
        parts.append(("the function", function))
        parts += [(f"argument {k}", argument) for k, argument in enumerate(value.args)]
        parts += [(f"argument {name!r}", argument) for name, argument in value.keywords.items()]
    code = getattr(value, "__code__", None)
    if code is not None:
        cells = getattr(value, "__closure__", None) or ()
        for name, cell in zip(code.co_freevars, cells, strict=False):
            parts.append((f"the variable {name!r}", cell.cell_contents))
        for name in code.co_names:
            if name in value.__globals__:
                parts.append((f"the global variable {name!r}", value.__globals__[name]))
    if isinstance(value, dict):
        parts += [(f"item {key!r}", item) for key, item in value.items()]
    elif isinstance(value, list | tuple):
        parts += [(f"item {k}", item) for k, item in enumerate(value)]
    elif hasattr(value, "__dict__") and not isinstance(value, type) and code is None:
        parts += [(f"attribute {name!r}", attribute) for name, attribute in vars(value).items()]
    return parts
